"""Results of upstream's specs are compared with the table of known failures."""

from pathlib import Path

import pytest

from eclectus.kube.constraints import IGNORED, REFUSED
from eclectus_e2e.upstream.known_failures import KNOWN_FAILURES, KnownFailure
from eclectus_e2e.upstream.results import Outcome, SpecResult, is_good, judge, read_results, summary

KNOWN = {
    "host ports": KnownFailure("fake nodes have no addresses"),
    "prefers": KnownFailure("needs preferences", always=False),
}


def result(state: str, name: str = "preempts a pod", message: str = "") -> SpecResult:
    return SpecResult(f"[sig-scheduling] {name}", state, 12.4, message)


@pytest.mark.parametrize(
    ("found", "outcome", "why"),
    [
        (result("passed"), Outcome.PASSED, ""),
        (result("failed", message="timed out\nmore"), Outcome.FAILED, "timed out\nmore"),
        (result("interrupted"), Outcome.FAILED, ""),
        (result("skipped", message="needs two nodes"), Outcome.SKIPPED, "needs two nodes"),
        (result("failed", "two host ports"), Outcome.KNOWN, "fake nodes have no addresses"),
        (
            result("passed", "two host ports"),
            Outcome.OUTDATED,
            "listed as a failure: fake nodes have no addresses",
        ),
        (result("failed", "prefers a node"), Outcome.KNOWN, "needs preferences"),
        (result("passed", "prefers a node"), Outcome.PASSED, "by chance: needs preferences"),
    ],
)
def test_each_state_has_an_outcome_and_a_reason(found: SpecResult, outcome: Outcome, why: str) -> None:
    judged = judge(found, KNOWN)
    assert (judged.outcome, judged.why) == (outcome, why)


def test_a_line_has_outcome_seconds_and_name_and_below_it_the_first_line_of_the_reason() -> None:
    assert judge(result("passed"), KNOWN).line == "passed      12 s  preempts a pod"
    failed = judge(result("failed", message="timed out\nmore"), KNOWN)
    assert failed.line == "FAILED      12 s  preempts a pod\n                  timed out"


def test_a_run_is_good_when_specs_passed_and_only_known_ones_failed() -> None:
    passed, failed = judge(result("passed"), KNOWN), judge(result("failed"), KNOWN)
    known = judge(result("failed", "two host ports"), KNOWN)
    outdated = judge(result("passed", "two host ports"), KNOWN)
    assert is_good([passed, known])
    assert not is_good([passed, failed])
    assert not is_good([passed, outdated])
    assert not is_good([known])
    assert summary([passed, known, passed]) == "2 passed, 1 known"


def test_a_line_that_is_being_written_is_left_for_later(tmp_path: Path) -> None:
    file = tmp_path / "results"
    assert read_results(file) == []
    line = '{"name": "a", "state": "passed", "seconds": 1.5, "message": ""}\n'
    file.write_text(line + line[:20])
    assert read_results(file) == [SpecResult("a", "passed", 1.5, "")]


def test_the_table_names_features_that_eclectus_does_not_support() -> None:
    features = {**REFUSED, **IGNORED}
    whys = [known.why for known in KNOWN_FAILURES["eclectus"].values()]
    unknown = [why for why in whys if not any(f"needs {feature}, " in why for feature in features)]
    assert unknown == [], "supported by now: remove the entry from known_failures.py"
