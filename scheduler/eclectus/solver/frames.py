"""Problems and answers as bytes: a header of whole numbers, then arrays; an answer is its length and JSON."""

from struct import Struct as Packing

import msgspec
import numpy as np

from eclectus.maths.min_cost_flow import FlowProblem
from eclectus.model.events import Solved

HEADER = Packing("<qqq")  # serial, arcs, nodes
LENGTH = Packing("<q")
ITEM_BYTES = 8


def encoded_problem(serial: int, problem: FlowProblem) -> bytes:
    """A problem under a serial number."""
    arrays = (np.ascontiguousarray(each, dtype="<i8").tobytes() for each in problem)
    return HEADER.pack(serial, len(problem.tails), len(problem.supplies)) + b"".join(arrays)


def body_bytes(header: bytes) -> int:
    """How many bytes follow a header."""
    _, arcs, nodes = HEADER.unpack(header)
    return int(ITEM_BYTES * (4 * arcs + nodes))


def decoded_problem(header: bytes, body: bytes) -> tuple[int, FlowProblem]:
    """The serial number and the problem; the arrays cannot be written."""
    serial, arcs, nodes = HEADER.unpack(header)
    numbers = np.frombuffer(body, dtype="<i8").astype(np.int64, copy=False)
    tails, heads, capacities, costs = numbers[: 4 * arcs].reshape(4, arcs)
    return int(serial), FlowProblem(tails, heads, capacities, costs, numbers[4 * arcs : 4 * arcs + nodes])


def encoded_answer(solved: Solved) -> bytes:
    """An answer, after its length."""
    text = msgspec.json.encode(solved)
    return LENGTH.pack(len(text)) + text


def decoded_answer(text: bytes) -> Solved:
    """An answer without its length. Raises msgspec.DecodeError."""
    return msgspec.json.decode(text, type=Solved)
