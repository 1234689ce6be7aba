"""What each spec did, and whether that was expected."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from eclectus_e2e.upstream.known_failures import KnownFailure

_NAME_WIDTH = 100  # a line of the report fits a terminal of 120 columns


class SpecResult(msgspec.Struct, frozen=True):
    """A spec that ended: its full name, Ginkgo's state, seconds, and why it failed or skipped itself."""

    name: str
    state: str
    seconds: float
    message: str


class Outcome(StrEnum):
    """The state of a spec compared with the table of known failures."""

    PASSED = "passed"
    SKIPPED = "skipped"
    KNOWN = "known"  # failed, and the table says why
    FAILED = "FAILED"
    OUTDATED = "OUTDATED"  # passed, although the table says that it always fails


@dataclass(frozen=True)
class Judged:
    """A spec's outcome; `why`: the table's reason, or the message of the failure or skip."""

    result: SpecResult
    outcome: Outcome
    why: str

    @property
    def line(self) -> str:
        """Outcome, seconds and name, and the reason in a second line."""
        name = self.result.name.removeprefix("[sig-scheduling] ")
        text = f"{self.outcome:<9}{self.result.seconds:>5.0f} s  {name[:_NAME_WIDTH]}"
        return text + (f"\n{'':18}{self.why.strip().splitlines()[0]}" if self.why.strip() else "")


def read_results(file: Path) -> list[SpecResult]:
    """The results written so far, without a line that is being written; none while there is no file."""
    content = file.read_bytes() if file.exists() else b""
    complete = content[: content.rfind(b"\n") + 1]
    return msgspec.json.Decoder(SpecResult).decode_lines(complete)


def judge(result: SpecResult, known_failures: Mapping[str, KnownFailure]) -> Judged:
    """Compare a result with the table: part of the name -> why it fails."""
    known = next((each for part, each in known_failures.items() if part in result.name), None)
    has_passed = result.state == "passed"
    if result.state == "skipped":
        return Judged(result, Outcome.SKIPPED, result.message)
    if known is None:
        return Judged(result, Outcome.PASSED if has_passed else Outcome.FAILED, result.message)
    if not has_passed:
        return Judged(result, Outcome.KNOWN, known.why)
    if known.always:
        return Judged(result, Outcome.OUTDATED, f"listed as a failure: {known.why}")
    return Judged(result, Outcome.PASSED, f"by chance: {known.why}")


def is_good(judged: Iterable[Judged]) -> bool:
    """Whether some spec passed, and the others did what the table says."""
    outcomes = {one.outcome for one in judged}
    return Outcome.PASSED in outcomes and not outcomes & {Outcome.FAILED, Outcome.OUTDATED}


def summary(judged: Iterable[Judged]) -> str:
    """How many specs had each outcome."""
    counts = Counter(one.outcome for one in judged)
    return (
        ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome]) or "no spec ran"
    )
