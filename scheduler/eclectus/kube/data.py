"""What a pod says of its data: the annotation `eclectus.dev/inputs`.

    [{"name": "logs-07", "bytes": 134217728, "nodes": ["n4", "n9", "n17"]}]
    [{"name": "hbase", "bytes": 42000000000}]

An input without `nodes` is a data set of Fluid in the pod's namespace. Fluid labels the nodes that cache it.

It is a hint of a user, who may be anybody, so its size is bounded. Of a list the inputs that can be read
count, and each other one is left out and named. Whether a node of that name exists is for those to see who
know the nodes: a name of none means nothing.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from eclectus.api import names
from eclectus.api.common import MAX_NAME
from eclectus.model.objects import Input

MAX_BYTES = 4096  # of the annotation
MAX_INPUTS = 16  # of a pod
MAX_NODES = 16  # of an input
FLUID_PREFIX = "fluid.io/s-"  # of the label of nodes that cache a data set, before namespace and name
FLUID_LABEL_MOST = 62  # bytes; of a longer one Fluid has the uid of the data set in place of these


class _Input(Struct, frozen=True):
    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
    bytes: Annotated[int, Meta(gt=0, le=2**60)]
    nodes: (
        Annotated[tuple[Annotated[str, Meta(max_length=MAX_NAME)], ...], Meta(max_length=MAX_NODES)]
        | UnsetType
    ) = UNSET


def inputs(text: str, namespace: str) -> tuple[Input, ...]:
    """The inputs in the annotation's text that can be read. `namespace`: of the pod."""
    return _read(text, namespace)[0]


def input_problems(text: str, namespace: str) -> tuple[str, ...]:
    """What is wrong with the others, each named by its place in the list."""
    return tuple(f"{names.INPUTS}{problem}" for problem in _read(text, namespace)[1])


def _read(text: str, namespace: str) -> tuple[tuple[Input, ...], list[str]]:
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
            continue
        label = f"{FLUID_PREFIX}{namespace}-{read.name}"
        if read.nodes is not UNSET:
            found.append(Input(read.name, read.bytes, tuple(dict.fromkeys(read.nodes))))
        elif len(label.encode()) <= FLUID_LABEL_MOST:
            found.append(Input(read.name, read.bytes, node_label=label))
        else:
            problem = (
                f"no nodes, and Fluid has no label {label}, as it is longer than {FLUID_LABEL_MOST} bytes"
            )
            problems.append(f"[{number}]: {problem}; state nodes, or give the data set a shorter name")
    if len(listed) > MAX_INPUTS:
        problems.append(f": {len(listed)} inputs; the first {MAX_INPUTS} are considered")
    return tuple(found), problems
