"""What a tool asks the model (`sampling`), as a request of the session's model.

The model is given what the server wrote and nothing of the session: neither its conversation nor its items.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from windowpane.context.ids import BlobHash
from windowpane.context.request import CallSettings, ReplyOptions, RequestMessage
from windowpane.errors import InvalidInputError
from windowpane.files.read import DEFAULT_LIMIT_BYTES, read_files
from windowpane.text.attached import attached_texts, sent_files
from windowpane.tools.asking import NotSampledError, Sampling

MOST_SAMPLES = 10
"""How often one call may ask the model."""
MOST_SAMPLED_TOKENS = 100_000
"""How many tokens one call may use of the model, what it is given and what it may answer together."""
MOST_OUTPUT_TOKENS = 4096
"""How long one answer may be, where the session says nothing else."""


@dataclass(frozen=True, slots=True)
class PreparedSampling:
    """What the model will be given, how it is called, and the bytes of files that go along."""

    messages: tuple[RequestMessage, ...]
    settings: CallSettings
    blobs: Mapping[BlobHash, str]


async def prepared(sampling: Sampling, settings: CallSettings) -> PreparedSampling:
    """Return what the model is given for a tool.

    Raises:
        NotSampledError: it is empty, or an image in it cannot be taken.
    """
    if not sampling.messages or sampling.max_tokens < 1:
        raise NotSampledError("the model was not asked: there is no message, or no room for an answer")
    called = CallSettings(
        model=settings.model,
        temperature=sampling.temperature,
        max_output_tokens=min(sampling.max_tokens, settings.max_output_tokens or MOST_OUTPUT_TOKENS),
        reply_options=ReplyOptions(stop=sampling.stop),
        price=settings.price,
        inputs=settings.inputs,
    )
    messages = [RequestMessage(role="system", content=sampling.system, part="core")] if sampling.system else []
    blobs: dict[BlobHash, str] = {}
    for message in sampling.messages:
        try:
            read = await read_files(message.files, limit_bytes=DEFAULT_LIMIT_BYTES)
        except InvalidInputError as error:
            raise NotSampledError(f"the model was not asked: {error}") from None
        notes = [each.text for each in attached_texts(read.attachments, called, read.blobs)]
        part = RequestMessage(role=message.role, content="\n\n".join((*notes, message.text)), part="message")
        messages.append(replace(part, files=sent_files(read.attachments, called)))
        blobs |= read.blobs
    return PreparedSampling(tuple(messages), called, blobs)


def shown(sampling: Sampling, settings: CallSettings) -> str:
    """Return what a user reads of it before allowing it."""
    lines = [f"To {settings.model}, at most {settings.max_output_tokens:,} tokens of answer."]
    if sampling.system:
        lines.append(f"SYSTEM: {sampling.system}")
    for message in sampling.messages:
        files = f" [with {len(message.files)} images]" if message.files else ""
        lines.append(f"{message.role.upper()}: {message.text}{files}")
    return "\n\n".join(lines)
