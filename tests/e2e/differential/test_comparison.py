"""Which answers agree, and what is called a difference."""

from collections import Counter

import pytest

from eclectus_e2e.differential.comparison import Kind, compare, compare_pinned
from eclectus_e2e.differential.known_differences import WHY, scored_alike
from eclectus_e2e.differential.questions import SILENCE, Answer
from eclectus_e2e.differential.totals import Totals
from eclectus_e2e.paths import CHECKOUT

FULL = "0/1 nodes are available: 1 Insufficient cpu."
TAINT = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
NO_VICTIMS = " preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
NOT_HELPFUL = " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
SCORED = Answer("n1", scores={"n1": 300, "n2": 300, "n3": 100})


def kind_of(theirs, ours, by_score=True):
    found = compare(theirs, ours, Counter(), by_score=by_score)
    return found.kind if found else None


@pytest.mark.parametrize(
    ("theirs", "ours", "kind"),
    [
        (SCORED, Answer("n1"), None),
        (SCORED, Answer("n2"), None),
        (SCORED, Answer("n3"), Kind.NOT_BEST),
        (SCORED, Answer("n4"), Kind.INFEASIBLE),
        (SCORED, Answer(message=FULL), Kind.REFUSED),
        (Answer("n1"), Answer("n1"), None),
        (Answer("n1"), Answer("n2"), Kind.INFEASIBLE),
        (Answer(message=FULL), Answer("n1"), Kind.PLACED),
        (Answer(message=FULL), Answer(message=FULL), None),
        (Answer(message=FULL), Answer(message=TAINT), Kind.REASONS),
        (Answer(message=FULL + NO_VICTIMS), Answer(message=FULL + NO_VICTIMS), None),
        (Answer(message=FULL + NO_VICTIMS), Answer(message=FULL + NOT_HELPFUL), Kind.PREEMPTION),
        (Answer(message=FULL), Answer(message=SILENCE), Kind.SILENT),
        (Answer(message=SILENCE), Answer("n1"), Kind.SILENT),
    ],
)
def test_answers(theirs, ours, kind):
    assert kind_of(theirs, ours) == kind


def test_without_its_scores_any_feasible_node_is_right():
    assert kind_of(SCORED, Answer("n3"), by_score=False) is None
    assert kind_of(SCORED, Answer("n4"), by_score=False) is Kind.INFEASIBLE


def test_a_pinned_pod_must_be_there():
    assert compare_pinned("n1", Answer("n1")) is None
    refused = compare_pinned("n1", Answer(message=FULL))
    assert refused is not None
    assert refused.kind is Kind.NOT_THERE
    assert FULL in str(refused)


@pytest.mark.parametrize(
    ("theirs", "ours", "name"),
    [
        (f"{FULL} not found", FULL + NOT_HELPFUL, "not found"),
        (TAINT, f"{TAINT} No node, however empty, satisfies: taint team=a.", "never feasible"),
    ],
)
def test_what_is_known_is_no_difference_and_is_counted(theirs, ours, name):
    used = Counter()
    assert compare(Answer(message=theirs), Answer(message=ours), used, by_score=True) is None
    assert used == {name: 1}
    assert compare(Answer(message=ours), Answer(message=theirs), used, by_score=True) is not None


def test_the_page_about_differences_names_every_known_one():
    page = (CHECKOUT / "docs" / "differences.md").read_text()
    assert [name for name in WHY if f"`{name}`" not in page] == []


def test_pods_that_are_scored_otherwise_are_counted():
    used = Counter()
    assert scored_alike({"spec": {}}, used)
    assert not scored_alike({"spec": {"resources": {"requests": {"cpu": "1"}}}}, used)
    assert used == {"pod-level score": 1}


def test_totals_say_how_often_both_agree():
    totals = Totals(clusters=1)
    totals.count(SCORED, Answer("n2"), Answer("n3"))
    totals.count(Answer("n1", scores={"n1": 2, "n2": 1}), Answer("n1"), Answer("n1"))
    totals.count(Answer(message=FULL), Answer(message=FULL), Answer(message=FULL))
    assert "6 decisions" in totals.line
    assert "2 of them about pods that fit nowhere, with 1 messages" in totals.text
    assert "among 1.5 of these" in totals.text
    assert "same node in 50%" in totals.text
    assert "one of the best in 50%" in totals.text
