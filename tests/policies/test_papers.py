"""Each policy says where its idea is from, and where it departs from that."""

import re
import sys

import pytest

from eclectus.policies.table import ROLES

OF_KUBERNETES = "kube-scheduler"  # whose rule it is: there is no paper
WITHOUT_SOURCE = {"none", "round-robin", "fifo"}  # baselines of a line
KINDS = [(role, name, kind) for role, known in ROLES.items() for name, kind in known.items()]
SOURCE = re.compile(r"\b(19|20)\d\d\b|this project|the project's own|Apache|Hadoop|" + OF_KUBERNETES)
DEPARTURES = re.compile(r"[Dd]epartures?\b|kube-scheduler's queue order|the project's own")


def said_of(kind):
    return sys.modules[kind.__module__].__doc__ or ""


@pytest.mark.parametrize(("role", "name", "kind"), KINDS, ids=[f"{role}-{name}" for role, name, _ in KINDS])
def test_a_policy_names_its_source_and_its_departures(role, name, kind):
    text = said_of(kind)
    assert text, "its module has no docstring"
    if name not in WITHOUT_SOURCE:
        assert SOURCE.search(text), "name the paper and its year, or say that the idea is this project's"
        assert DEPARTURES.search(text), "list the departures, or write `No departures`"


def test_what_has_no_source_is_short():
    """So that nothing of a paper hides among the baselines."""
    for _, name, kind in KINDS:
        if name in WITHOUT_SOURCE:
            assert len(said_of(kind)) < 600
