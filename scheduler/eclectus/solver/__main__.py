"""`python -m eclectus.solver`: reads problems from its input and writes answers to its output, to the end."""

import os
import resource
import sys
from typing import BinaryIO

from eclectus.solver.flow import solved
from eclectus.solver.frames import HEADER, body_bytes, decoded_problem, encoded_answer

MEMORY_BYTES = 1 << 29  # of address space: beyond it the process ends, and not the scheduler beside it
NICENESS = 10  # behind the scheduler where both need the CPU


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer one problem after the other, until there are no more."""
    while len(header := questions.read(HEADER.size)) == HEADER.size:
        body = questions.read(body_bytes(header))
        answers.write(encoded_answer(solved(*decoded_problem(header, body))))
        answers.flush()


def bound() -> None:
    """Bound what this process takes from the scheduler beside it."""
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


if __name__ == "__main__":
    bound()
    serve(sys.stdin.buffer, sys.stdout.buffer)
