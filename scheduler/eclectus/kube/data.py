"""What a pod says of its data: the annotation `eclectus.dev/inputs`.

    [{"name": "logs-07", "bytes": 134217728, "nodes": ["n4", "n9", "n17"]}]

It is a hint of a user, who may be anybody, so its size is bounded. Of a list the inputs that can be read
count, and each other one is left out and named. Whether a node of that name exists is for those to see who
know the nodes: a name of none means nothing.
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from eclectus.api import names
from eclectus.api.common import MAX_NAME
from eclectus.model.objects import Input

MAX_BYTES = 4096  # of the annotation
MAX_INPUTS = 16  # of a pod
MAX_NODES = 16  # of an input


class _Input(Struct, frozen=True):
    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
    bytes: Annotated[int, Meta(gt=0, le=2**60)]
    nodes: Annotated[tuple[Annotated[str, Meta(max_length=MAX_NAME)], ...], Meta(max_length=MAX_NODES)]


def inputs(text: str) -> tuple[Input, ...]:
    """The inputs in the annotation's text that can be read."""
    return _read(text)[0]


def input_problems(text: str) -> tuple[str, ...]:
    """What is wrong with the others, each named by its place in the list."""
    return tuple(f"{names.INPUTS}{problem}" for problem in _read(text)[1])


def _read(text: str) -> tuple[tuple[Input, ...], list[str]]:
    if len(text.encode(errors="replace")) > MAX_BYTES:
        return (), [f": more than {MAX_BYTES} bytes; name fewer inputs, or those with the most bytes"]
    try:
        listed = msgspec.json.decode(text, type=list[Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return (), [f": no JSON list of inputs ({error})"]
    found, problems = [], []
    for number, raw in enumerate(listed[:MAX_INPUTS]):
        try:
            read = msgspec.json.decode(raw, type=_Input)
        except (msgspec.MsgspecError, RecursionError) as error:
            problems.append(f"[{number}]: {error}")
        else:
            found.append(Input(read.name, read.bytes, tuple(dict.fromkeys(read.nodes))))
    if len(listed) > MAX_INPUTS:
        problems.append(f": {len(listed)} inputs; the first {MAX_INPUTS} are considered")
    return tuple(found), problems
