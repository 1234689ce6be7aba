"""What a release has made, and what it has not and why."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from eclectus_e2e.errors import E2EError, MachineError

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Report:
    """Titles of parts that were not made, with the reason: they failed, or they cannot be had here."""

    failed: dict[str, str] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)

    def attempt(self, title: str, make: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T | None:
        """What `make` returns, or None with the reason noted: a part that fails does not stop the others."""
        print(f"{title} ...", file=sys.stderr, flush=True)
        started = time.monotonic()
        try:
            made = make(*arguments, **named)
        except MachineError as error:
            self.lacking[title] = str(error)
        except E2EError as error:
            self.failed[title] = str(error)
        else:
            print(f"{title}: made in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
            return made
        return None

    def lines(self) -> list[str]:
        """A line for each part that was not made."""
        return [f"{title}: {reason}" for title, reason in {**self.failed, **self.lacking}.items()]
