"""Tell what a user states in plain words from what is only said.

"My brother Tomas studies law" and "I'm allergic to peanuts" have to be remembered; "that must have been awesome" has
not. The rules are about form, not about topics: who a sentence is about, whether its verb says how things are, and
whether its words are more than praise, feeling and courtesy. A standing preference is a statement about what the user
never, always or rather does or has, or an instruction that holds for every answer.
"""

import re
from functools import lru_cache

from windowpane.search.words import words
from windowpane.text.tokens import rarity

LONGEST_STATEMENT = 160
FEWEST_WORDS = 3
TELLING_RANK = 900
"""Words up to here in the vocabulary are in every conversation."""

TASTE = 1.0
BINDING = 2.0
"""How much a preference weighs that the user likes to see kept, and one that must be kept to."""


@lru_cache(maxsize=4096)
def statement_weight(clause: str) -> float:
    """Return how much a clause of a user states: 0 for nothing, more for what is so and stays so."""
    text = _LEAD.sub("", clause.strip())
    if len(text) > LONGEST_STATEMENT or len(text.split()) < FEWEST_WORDS or text.endswith("?"):
        return 0.0
    about = _ABOUT.match(text)
    if about is None or _COURTESY.search(text) or not _telling(text):
        return 0.0
    lasting = _LASTING.search(text, about.start()) is not None
    counted = _COUNTED.search(text) is not None
    owned = about["owned"] is not None
    feeling = _FEELING.search(text) is not None
    return max(0.0, 0.5 + lasting + owned + counted - 1.5 * feeling)


@lru_cache(maxsize=4096)
def preference_weight(clause: str) -> float:
    """Return how binding a standing preference is: 0 for none, else `TASTE` or `BINDING`."""
    text = _LEAD.sub("", clause.strip())
    if len(text) > LONGEST_STATEMENT or text.endswith("?") or _PASSING.search(text):
        return 0.0
    if _BINDING.search(text) or (_TOLD.match(text) and _ON_ANSWERS.search(text)) or _STANDING_ORDER.match(text):
        return BINDING
    taste = _TASTE.search(text)
    return TASTE if taste and _telling(taste["what"]) and not _COURTESY.search(text) else 0.0


def is_chatty(clause: str) -> bool:
    """Tell whether a clause has words of courtesy, praise or feeling. Those that announce a statement are none."""
    text = _LEAD.sub("", clause.strip())
    return _COURTESY.search(text) is not None or _FEELING.search(text) is not None


def _telling(text: str) -> bool:
    """Tell whether a text has a word that is neither in every conversation nor praise or feeling."""
    plain = _FEELING.sub(" ", text)
    return _COUNTED.search(plain) is not None or any(
        rarity(word.lower()) >= TELLING_RANK or word[0].isupper()
        for word in re.findall(r"[^\W_][\w'’-]*", plain)[1:]
        if words(word)
    )


_LEAD = re.compile(
    r"^(?:(?:and|but|so|also|well|ok(?:ay)?|oh|yes|yeah|no|please|by the way|btw|note that|remember that|remember"
    r"|just so you know|fyi|actually|for the record|from now on|in (?:the )?future|in general|as a rule)\b[\s,:–-]*)+",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"""^(?:
      (?P<owned>(?:my|our)\b|i\s+(?:own|have|has|had)\b|we\s+(?:own|have|had)\b|i['’]ve\s+got\b)
    | (?:i|we|i['’](?:m|ve|d|ll)|we['’](?:re|ve|d|ll))\b
    | the\s+\w|his\b|her\b|their\b|there\s+(?:is|are|was|were)\b|you\s+can\s+(?:reach|find|call)\b
    | [A-Z][\w'’-]+(?:\s+[A-Z][\w'’-]+)*\s+(?:is|was|has|had|lives?|works?|will|leads?|owns?|plays?|studies|gives?)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_LASTING = re.compile(
    r"""\b(?:
      is|are|am|has|have|i['’]m|we['’]re|been|own|owns|lives?|works?|belongs?|uses?|runs?|costs?|pays?|earns?|drives?
    | teach(?:es)?|stud(?:y|ies)|plays?|keeps?|meets?|starts?|ends?|goes|leaves?|opens?|closes?|comes?|called|named|born
    | moved|married|decided|agreed|sold|bought|quit|died|needs?|speaks?|holds?|takes?|makes?|sits?|stands?|weighs?
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_FEELING = re.compile(
    r"""\b(?:
      amazing|awesome|great|good|nice|lovely|beautiful|wonderful|fantastic|incredible|cool|fun|funny|happy|glad|proud
    | excited|exciting|sad|sorry|grateful|thankful|lucky|special|inspiring|inspired|inspiration|important|calming
    | peaceful|powerful|stunning|gorgeous|perfect|best|better|worse|worst|tough|hard|easy|crazy|wild|sweet|cute
    | interesting|tired|stressed|nervous|scared|bored|blast|joy|journey|moments?|memor(?:y|ies)|experience
    | feelings?|feels?|feeling|felt|love|loved|loves|enjoy(?:ed|ing)?|hope|hoping|think|thought|guess|believe
    | imagine|wonder(?:ing)?|wish|bet
    | looking\ forward|can['’]?t\ wait|know|sure|really|definitely|totally|absolutely|surely|always|never|things?|stuff
    | way|ways|lots?|ton|bit|kind|sort|time|times|day|days|week|weeks|life|lives|people|friends?|stay(?:ed)?|keep\ going
    | support(?:ive)?|encourag\w+|motivat\w+|dreams?|passion|challenges?|positive|vibes?|busy|hear|heard|sounds?|looks?
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_COURTESY = re.compile(
    r"""\b(?:thanks?|thank\ you|welcome|congrat\w*|good\ luck|take\ care|see\ you|talk\ (?:soon|to\ you)|no\ worries
    | (?:i['’]m|we['’]re|i\ am)\ (?:so\ |really\ |very\ )?(?:glad|happy|proud|sorry|excited|grateful|lucky
      |sure|not\ sure)
    | (?:i|we)\ (?:really\ |totally\ |just\ )?(?:hope|think|thought|guess|believe|imagine|wonder|wish|bet|agree
      |appreciate|know|feel|felt|see|hear|understand|mean|bet|wonder|never\ thought)
    | i\ can(?:['’]t|not|\ not)?\ (?:wait|imagine|believe|see|help)|look(?:ing)?\ forward|must\ have\ been
    | could\ not\ agree|couldn['’]t\ agree
    | (?:i|we)\ (?:just\ |really\ )?(?:want|need|wan+a|plan|try|would\ like)\ (?:to|you|some|an?)|wanna|i['’]d\ like
    | (?:i['’]m|we['’]re|i\ am|we\ are)\ (?:trying|looking|thinking)|will\ see)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_COUNTED = re.compile(
    r"""\b(?:
      (?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen
        |(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\w+)?|hundred|thousand|dozen|half\ past|quarter\ (?:to|past)
        |first|second|third|last)\s+(?!time|thing|of\b|place|step|one)\w+
    | \d[\d.,:]*
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_PASSING = re.compile(
    r"\b(?:today|tonight|right now|this time|for now|at the moment|yesterday|that|those)\b", re.IGNORECASE
)
_BINDING = re.compile(
    r"""\b(?:
      (?:i['’]m|i\ am|we['’]re|we\ are|my\ \w+\ is|is)\s+(?:\w+ly\s+)?(?:an?\s+)?(?:strict\s+)?
        (?:allergic|intolerant|vegetarians?|vegans?|diabetic|coeliac|celiac|lactose|gluten|pregnant|colou?r-?blind|deaf|blind
        |dyslexic|left-handed|halal|kosher|muslim|jewish|teetotal|sensitive\ to|not\ allowed)
    | allerg(?:y|ies)\ to
    | i\ (?:can['’]?t|cannot|can\ not|mustn['’]?t|must\ not|may\ not|don['’]?t|do\ not|won['’]?t|will\ not|never)\s+
        (?:eat|drink|have|take|use|wear|touch|tolerate|digest|fly|drive|work|stand|do|want|like|travel|cook|buy|smoke)\b
    | (?:my|our)\ pronouns|call\ me|i\ go\ by|address\ me
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_STANDING_ORDER = re.compile(
    r"^(?:always|never|(?:do\s+not|don['’]?t|avoid|stop)\s+(?:ever\s+)?(?!worry|forget|give|quit|stop|be\b|you)\w+(?:ing)?)\b.*\S\s\S"
    r"|^(?:whenever|every time|each time|when(?:ever)? you (?:answer|write|reply|talk))\b",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"^(?:always\s+|only\s+|just\s+|kindly\s+|you (?:should|must)\s+)?(?:answer|write|use|keep|give|format"
    r"|reply|respond|explain|include|spell|show|speak|talk|be|make|stick|switch|add|put|start|end|sign|translate|round|cite|prefer|limit)\b",
    re.IGNORECASE,
)
_ON_ANSWERS = re.compile(
    r"""\b(?:
      answers?|repl(?:y|ies)|responses?|words|sentences?|paragraphs?|bullet\w*|lists|emojis?|tables|markdown|headings?
    | units?|metric|imperial|celsius|fahrenheit|kilomet\w+|miles|euros?|dollars?|dates?|times?\ in|24-hour|spelling
    | british|american|english|german|french|spanish|italian|dutch|formal(?:ly)?|informal(?:ly)?|brief(?:ly)?
    | concise(?:ly)?|short|tone|style|format|language|comments?|type\ hints|tabs|spaces|first\ names?|jargon
    | step\ by\ step
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_TASTE = re.compile(
    r"""\b(?:
      (?:i|we)\s+(?:\w+ly\s+)?(?:prefer|like|love|hate|dislike|detest|enjoy|would\ rather|usually
        |only\ (?:eat|drink|use|buy|wear)|always|never|can['’]?t\ stand|am\ (?:a\ big\ )?fan\ of)
    | i['’]d\ rather|(?:my|our)\ favou?rite
    )\s+(?!it\b|them\b|you\b|this\b|how\b|when\b|what\b|being\b|seeing\b|hearing\b|to\s+(?:hear|see|know)\b)(?P<what>\S.*)""",
    re.IGNORECASE | re.VERBOSE,
)
