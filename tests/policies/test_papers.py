"""Each policy says where its idea is from, and where it departs from that."""

import re
import sys

import pytest

from eclectus.policies.table import ROLES

WITHOUT_SOURCE = {"none", "round-robin", "fifo"}  # baselines of a line
OF_CODE = {  # the rule is that of a program, which the text names: there is no paper
    "least-allocated": "kube-scheduler",
    "most-allocated": "kube-scheduler",
    "requested-to-capacity-ratio": "kube-scheduler",
    "kube": "kube-scheduler",
    "preemption": "kube-scheduler",
    "native": "Hadoop",
    "late-hadoop": "Hadoop",
    "spark": "Apache Spark",
}
OUR_OWN = {("line", "rosella")}
KINDS = [
    pytest.param(role, name, kind, id=f"{role}-{name}")
    for role, known in ROLES.items()
    for name, kind in known.items()
]
PAPER = re.compile(r'"[A-Z][^"]{6,}",?[^"]{0,80}?\b(19|20)\d\d\b')  # a title, where it appeared, and the year
DEPARTURES = re.compile(r"\bDepartures?\b[^\n:]*[:.]\s*\S|\bNo departures\b|\b[Aa]s published\b")


def said_of(kind):
    return sys.modules[kind.__module__].__doc__ or ""


@pytest.mark.parametrize(("role", "name", "kind"), KINDS)
def test_a_policy_names_its_paper_and_its_departures(role, name, kind):
    text = said_of(kind)
    assert text, "its module has no docstring"
    if name in WITHOUT_SOURCE:
        assert len(text) < 600, "a baseline of a line, so that nothing of a paper hides in it"
    elif (role, name) in OUR_OWN:
        assert "the project's own" in text
    else:
        if name in OF_CODE:
            assert OF_CODE[name] in text
        else:
            assert PAPER.search(text), "name the paper with its title and its year"
        assert DEPARTURES.search(text), "list its departures after `Departures:`, or write `As published`"


@pytest.mark.parametrize(
    ("text", "names_paper", "lists_departures"),
    [
        ('A, B, "A Good Idea",\nNSDI 2011. Departures:\n- one.', True, True),
        ('A, "A Good Idea", 1999. As published.', True, True),
        ("A good idea of 2011, with departures of others.", False, False),
        ('A, "A Good Idea", NSDI. Departures from the paper:\n- one.', False, True),
    ],
)
def test_a_paper_has_title_and_year_and_departures_have_a_heading(text, names_paper, lists_departures):
    assert (bool(PAPER.search(text)), bool(DEPARTURES.search(text))) == (names_paper, lists_departures)
