"""JSON that is nested deeper than decoders follow: what is too deep is cut off, and the rest is read.

The API server takes objects of 10,000 levels, such as in a field whose content is not defined, or in the
field sets of `metadata.managedFields`, which every client that changes an object may write. Decoders raise
RecursionError at about a thousand, also for what they only skip. One such object in a list must hide none of
the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Raw

SERVER_LEVELS_MOST = 10_000  # that the API server takes in one object
LEVELS_MOST = 400  # of the JSON that is read: no field that matters here is deeper than 20

_T = TypeVar("_T")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]]', re.DOTALL)
_OPENING, _STRING = b"{[", ord('"')


def read_json(decode: Callable[[Any], _T], raw: bytes | Raw) -> _T:
    """What `decode` makes of the JSON, without what is nested too deep. Raises what `decode` raises."""
    try:
        return decode(raw)
    except RecursionError:
        return decode(shallow(bytes(raw)))


def shallow(raw: bytes, levels: int = LEVELS_MOST) -> bytes:
    """The JSON with null in place of each object and array below so many levels."""
    parts, level, kept_from = list[bytes](), 0, 0
    for token in _TOKEN.finditer(raw):
        at = token.start()
        if raw[at] == _STRING:
            continue
        if raw[at] in _OPENING:
            level += 1
            if level == levels + 1:
                parts += (raw[kept_from:at], b"null")
        else:
            if level == levels + 1:
                kept_from = token.end()
            level -= 1
    if level <= levels:  # otherwise it ends inside: not valid JSON, as it was before
        parts.append(raw[kept_from:])
    return b"".join(parts)
