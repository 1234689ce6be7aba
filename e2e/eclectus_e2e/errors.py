"""Errors of the end-to-end tools, and what to do about each.

E2EError
├── MachineError     a program or capability is missing: install what the message names
├── BuildError       a program did not compile or an image step failed: the message ends with its output
├── StartError       a component did not start: the message ends with the end of its log
├── UsageError       the command line, a file or the environment is wrong: correct what is named
└── ApiError         the API server returned an error, with `status` and `reason`
"""


class E2EError(Exception):
    """Base of the errors that these tools report to their user."""


class MachineError(E2EError):
    """A program or capability of the machine is missing."""


class BuildError(E2EError):
    """A program did not compile, or a step of building an image failed."""


class StartError(E2EError):
    """A component did not start in time."""


class UsageError(E2EError):
    """The command line, a file or the environment is wrong."""


class ApiError(E2EError):
    """The API server rejected a request: HTTP `status`, `reason` and message of its Status object."""

    def __init__(self, what: str, status: int, reason: str, message: str) -> None:
        super().__init__(f"{what}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason
