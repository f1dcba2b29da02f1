"""Bytes made smaller where it pays. The first byte tells how.

What is packed are mostly short texts with the same words in them, above all records of requests. So they are compressed
with a dictionary: words that need not stand in each of them. A text can only be read with the dictionary that it was
packed with, so this one never changes; a better one gets a number of its own.
"""

import sys
import threading
import zlib

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdDict, decompress
else:
    from backports.zstd import ZstdCompressor, ZstdDict, decompress

_PLAIN = b"\0"
_DEFLATED = b"\1"
"""Earlier versions packed so."""

_WITH_WORDS = b"\2"
_LEVEL = 1
"""Records come out smaller than at level 3, prose one part in a hundred larger, in two thirds of the time."""

_WORTH_TRYING_BYTES = 128

_WORDS = ZstdDict(
    b"[[context ]][[end ]]# Rules\n\nFollow every rule; where two disagree,"
    b" the earlier one wins.\n\n## # References\n\nDraw on these where they help,"
    b' and name the ones you used.\n\n## Sources:  (confidence: 0.2), Related: {"offered_name":"",'
    b'"ref":{"type":"tool","name":"","server":""},"description":"","parameters":{"type":"object",'
    b'"properties":{"":{"type":"string","description":""},"":{"type":"integer"}},"required":[""],'
    b'"additionalProperties":false},"deferred":false}{"description":"","name":"","priority":100,'
    b'"related":[],"text":"","title":"","reference","reference","rule","rule","tool","tool","topic",'
    b'"name":["","code":["below_floor","below_floor","reason":["weak match: 0.00 (minimum 0.25)",'
    b'"weak match: 0.01 (minimum 0.25)","score":[0.1634,0.0,"meaning":[0.25,0.1,"words":[0.0,0.0,0.0,0.0,'
    b'"rank":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,'
    b"34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,65,66,"
    b"67,68,69,70,71,72,73,74,75,76,77,78,79,80,81,82,83,84,85,86,87,88,89,90,91,92,93,94,95,96,97,98,99,"
    b'100,"passage":[{"text":"","start":0,"end":16},{"text":"","start":0,"end":,"cut_off":[0.25,0.25,0.25,'
    b'"floor":[0.25,0.25,0.25],{"context":{"id":"req_","turn":2,"timestamp":"2026-11-17T16:59:29.249915Z",'
    b'"agent":"","settings":{"model":"","max_output_tokens":4096,"reply_options":{},"cache":"fresh",'
    b'"cache_key":""},"query":{"text":""},"items":[{"type":"rule","name":"","include_mode":"always",'
    b'"reason":"included in every session of this agent","tokens":60,"hash":"",'
    b'"version":"2026-11-17T16:59:16Z","priority":100},{"type":"tool","name":"","server":"windowpane",'
    b'"include_mode":"always","reason":"included in every session of this agent","tokens":74,"hash":"",'
    b'"version":"","offered_name":"windowpane__get_relevant_context"},{"type":"tool",'
    b'"name":"set_relevant_context","server":"windowpane"},{"type":"tool","name":"find_references",'
    b'"server":"windowpane"},{"type":"tool","name":"read_reference","server":"windowpane"},'
    b'{"type":"reference","name":"","include_mode":"agent","reason":"good match: 0.67","tokens":300,'
    b'"hash":"","version":"2026-11-17T16:59:16Z","priority":100,"evidence":{"score":0.67,"meaning":0.6,'
    b'"words":0.3,"rank":1,"passage":{"text":"","start":0,"end":16},"cut_off":0.25,"floor":0.25}}],'
    b'"candidates":{"type":["parts":[{"kind":"core","name":"core","tokens":172,"hash":""},{"kind":"core",'
    b'"name":"boundary","tokens":90,"hash":""},{"kind":"core","name":"working_context","tokens":102,'
    b'"hash":""},{"kind":"site","name":"default_site","tokens":45,"hash":""},{"kind":"rules","tokens":135,'
    b'"hash":""},{"kind":"history","name":"message 2","tokens":17,"hash":""},{"kind":"history",'
    b'"name":"message 5","tokens":100,"hash":""},{"kind":"sources","name":"message 5","tokens":55,'
    b'"hash":""},{"kind":"selected","tokens":615,"hash":""},{"kind":"message","tokens":17,"hash":""},'
    b'{"kind":"tools","name":"8 offered","tokens":709}],"budget":{"window_tokens":32000,'
    b'"reply_tokens":4096,"used_tokens":2752,"window_source":"model","pieces_tokens":27744},'
    b'"message_count":10,"degraded":[],"search":{"text":{"enabled":true,"top_k":20,"top_n":5,'
    b'"include_score":0.7,"floor":0.25,"share_of_best":0.35},"tools":{"enabled":true,"top_k":20,'
    b'"top_n":10,"include_score":1.01,"floor":0.06,"share_of_best":0.1},"deadline_s":1.0,'
    b'"context":"auto"},"pieces":[{"key":"prompt boundary","tier":"must","tokens":90,"sent_tokens":90},'
    b'{"key":"prompt core","tier":"must","tokens":172,"sent_tokens":172},{"key":"prompt default_site",'
    b'"tier":"must","tokens":45,"sent_tokens":45},{"key":"prompt working_context","tier":"must",'
    b'"tokens":102,"sent_tokens":102},{"key":"the message","tier":"must","tokens":17,"sent_tokens":17},'
    b'{"key":"message 21","tier":"latest","tokens":136,"sent_tokens":136},'
    b'{"key":"windowpane:read_reference","tier":"finder","tokens":74,"sent_tokens":74},'
    b'{"key":"message 18","tier":"older","tokens":18,"sent_tokens":18}],"catalog":"","finders":true},'
    b'"messages":[{"role":"system","part":"core","content":"","name":"core"},{"role":"system",'
    b'"part":"core","content":"","name":"boundary"},{"role":"system","part":"core","content":"",'
    b'"name":"working_context"},{"role":"system","part":"site","content":"","name":"default_site"},'
    b'{"role":"system","part":"rules","content":""},{"role":"user","part":"history","content":"",'
    b'"name":"message 2"},{"role":"assistant","part":"history","content":"","name":"message 5"},'
    b'{"role":"user","part":"sources","content":"","name":"message 5"},{"role":"user","part":"selected",'
    b'"content":""},{"role":"user","part":"message","content":""}],'
    b'"tools":[{"offered_name":"windowpane__get_relevant_context","ref":{"type":"tool",'
    b'"name":"get_relevant_context","server":"windowpane"},"offer":""}]}',
    is_raw=True,
)


def pack(body: bytes) -> bytes:
    """Return the bytes as they are kept."""
    if len(body) >= _WORTH_TRYING_BYTES:
        smaller = _compressed(body)
        if len(smaller) < len(body):
            return _WITH_WORDS + smaller
    return _PLAIN + body


def unpack(packed: bytes) -> bytes:
    """Return the bytes as they were given."""
    kind, rest = packed[:1], packed[1:]
    if kind == _WITH_WORDS:
        return decompress(rest, zstd_dict=_WORDS.as_digested_dict)
    return zlib.decompress(rest) if kind == _DEFLATED else rest


def _compressed(body: bytes) -> bytes:
    """Return a whole frame. To make a compressor takes half as long as a short text, so each thread keeps its own."""
    compressor: ZstdCompressor | None = getattr(_of_thread, "compressor", None)
    # Taken away meanwhile: one that was interrupted in a frame would go on with it.
    _of_thread.compressor = None
    compressor = compressor or ZstdCompressor(level=_LEVEL, zstd_dict=_WORDS.as_digested_dict)
    frame = compressor.compress(body, mode=ZstdCompressor.FLUSH_FRAME)
    _of_thread.compressor = compressor
    return frame


_of_thread = threading.local()
