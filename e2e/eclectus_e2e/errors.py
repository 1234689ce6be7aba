"""Errors of the end-to-end tools, by what the caller does next.

E2EError
├── MachineError     a program or capability is missing: install what the message names
├── BuildError       a program did not compile or a step of an image failed: its last words are told
├── StartError       a component did not come up: the tail of its log is in the message
├── UsageError       the command, file or environment is wrong: correct what is named
└── ApiError         the API server answered with an error: `status` and `reason` say which
"""


class E2EError(Exception):
    """Anything these tools report to a person."""


class MachineError(E2EError):
    """A program or capability of the machine is missing."""


class BuildError(E2EError):
    """A program did not compile, or a step of building an image failed."""


class StartError(E2EError):
    """A component did not come up in time."""


class UsageError(E2EError):
    """The command line, a file or the environment is wrong."""


class ApiError(E2EError):
    """The API server refused a request: HTTP `status`, `reason` and its message."""

    def __init__(self, what: str, status: int, reason: str, message: str) -> None:
        super().__init__(f"{what}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason
