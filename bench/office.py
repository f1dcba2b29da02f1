"""What benches of turns talk about: questions, answers of 400 characters, and an agent with items for them."""

from pathlib import Path

SUBJECTS = (
    "invoices", "refunds", "shipping", "passwords", "holidays", "meetings", "contracts", "servers", "backups", "taxes",
    "printers", "travel", "salaries", "training", "security", "parking", "insurance", "newsletters", "surveys", "stock",
)  # fmt: skip
ASPECTS = ("the deadline", "the form to fill in", "the person to ask", "the usual price", "what to do on a complaint")
QUESTIONS = (
    "What is {aspect} for {subject}?",
    "And who decides about it when that person is away?",
    "I need to write to a customer about {subject} today, and it should mention {aspect}. Can you help?",
    "What about last year?",
    "Remind me what we said about {subject}.",
)
ANSWER = (
    "For {subject} it is as follows: {aspect} stands in the handbook, in the chapter of the same name, and was changed "
    "in spring. Ask the team that looks after {subject} before you promise anything to a customer, since exceptions "
    "are made each month. If nothing is heard within three days, write again and name the number of the case, "
    "{number}, in the subject of your message, so that it is found."
)


def said(text: str, turn: int) -> str:
    subject, aspect = SUBJECTS[turn * 7 % len(SUBJECTS)], ASPECTS[turn * 3 % len(ASPECTS)]
    return text.format(subject=subject, aspect=aspect, number=1000 + turn)


def write_agent(folder: Path, items: int, *, search: bool, model: str = "scripted:bench") -> None:
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "core.md").write_text("You are the assistant of an office.")
    off = "" if search else "search:\n  enabled: false\n"
    (folder / "agent.yaml").write_text(f"model: {model}\n{off}")
    for kind in ("rules", "references"):
        (folder / kind).mkdir()
    for number in range(items):
        subject, aspect = SUBJECTS[number % len(SUBJECTS)], ASPECTS[number // len(SUBJECTS) % len(ASPECTS)]
        kind = "rules" if number % 4 == 0 else "references"
        text = f"About {subject}: {aspect} of case {number} is written down here. " * 6
        (folder / kind / f"{subject}-{number}.md").write_text(f"---\ninclude: agent\n---\n{text}")
