"""What objects of the API share: metadata, conditions, owners, and how values are written and read.

JSON that is nested deeper than decoders follow is cut off there, and the rest is read. The API server takes
objects of 10,000 levels, such as in a field whose content is not defined, or in the field sets of
`metadata.managedFields`, which every client that changes an object may write. Decoders raise RecursionError
at about a thousand, also for what they only skip. One such object in a list must hide none of the others.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar

from msgspec import DecodeError, Raw, Struct, field, json
from msgspec.structs import replace

from eclectus.model.errors import MalformedError

NOTABLE = 0.1  # relative change of a rate, absolute change of a share, that is worth a write
NOT_JSON = (DecodeError, UnicodeDecodeError)
"""What msgspec raises of bytes that are no JSON, or not of the type."""
MESSAGE_CHARACTERS = 2000  # of a condition's message: enough for a reader
LATEST_SECONDS = datetime(9999, 12, 31, tzinfo=UTC).timestamp()  # the last day that a time can be written of
_DIGITS = 4  # significant digits of the numbers in a status: people read them
MAX_NAME = 512  # characters: maxLength in the definitions, which refuse the whole status for one longer name
_HASH_DIGITS = 16  # of the hash that tells apart names with the same beginning
SERVER_LEVELS_MOST = 10_000  # that the API server takes in one object
LEVELS_MOST = 400  # of the JSON that is read: no field that matters here is deeper than 20
_T = TypeVar("_T")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]]', re.DOTALL)
_OPENING, _STRING = b"{[", ord('"')


class ObjectMeta(Struct, frozen=True, rename="camel"):
    """The fields of an object's metadata that Eclectus reads."""

    name: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""


class ListMeta(Struct, frozen=True):
    """A list's metadata: its version, and the token of the next page, empty on the last one."""

    resource_version: str = field(default="", name="resourceVersion")
    continue_: str = field(default="", name="continue")


class Page(Struct, Generic[_T], frozen=True):
    """One page of a list."""

    metadata: ListMeta = ListMeta()
    items: tuple[_T, ...] = ()


def page_of(decoder: json.Decoder[Page[_T]], kind: str, raw: bytes) -> Page[_T]:
    """A page of a list of this kind from its JSON. Raises MalformedError.

    One malformed object makes its whole page unreadable. The definition's schema admits none.
    """
    try:
        return decoder.decode(raw)
    except NOT_JSON as error:
        raise MalformedError(f"{kind}List", "?", "items", str(error)) from error


class Condition(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A standard condition."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    last_transition_time: str
    message: str = ""
    observed_generation: int = 0


def with_condition(conditions: Sequence[Condition], new: Condition) -> tuple[Condition, ...]:
    """The conditions with this one. Only its message changing is not worth a write."""
    old = next((each for each in conditions if each.type == new.type), None)
    if old and old.status == new.status:
        if (old.reason, old.observed_generation) == (new.reason, new.observed_generation):
            return tuple(conditions)
        new = replace(new, last_transition_time=old.last_transition_time)
    others = (each for each in conditions if each.type != new.type)
    return tuple(sorted((*others, new), key=lambda each: each.type))


def rounded(number: float) -> float:
    """The number to four significant digits."""
    return float(f"{number:.{_DIGITS}g}")


def has_changed(one: float, other: float) -> bool:
    """Whether two rates differ by more than a tenth of the greater."""
    return abs(one - other) > NOTABLE * max(abs(one), abs(other))


def time_text(seconds: float) -> str:
    """Seconds since the epoch as an RFC 3339 time in UTC, cut to whole seconds as Kubernetes does."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time_text(seconds: float) -> str:
    """The same with six digits, as the API server wants a MicroTime; the last day for a later time."""
    return datetime.fromtimestamp(min(seconds, LATEST_SECONDS), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def time_seconds(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time. Raises ValueError for any other text."""
    return datetime.fromisoformat(text).timestamp()


def bounded(name: str) -> str:
    """The name; a longer one is cut and ends in a hash of the whole, the same wherever it is computed."""
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{name[: MAX_NAME - _HASH_DIGITS - 1]}~{digest}"


def read_json(decode: Callable[[Any], _T], raw: bytes | Raw) -> _T:
    """What `decode` makes of the JSON, without what is nested too deep. Raises what `decode` raises."""
    try:
        return decode(raw)
    except RecursionError:
        return decode(shallow(bytes(raw)))


def without_nulls(content: Any) -> Any:
    """JSON content without the fields that are null, which mean not set in all of Kubernetes."""
    if isinstance(content, dict):
        return {name: without_nulls(each) for name, each in content.items() if each is not None}
    if isinstance(content, list | tuple):
        return [without_nulls(each) for each in content]
    return content


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
