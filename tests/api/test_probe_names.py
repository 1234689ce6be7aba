import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.api.names import ATTEMPT_LABEL, INSTANCE_LABEL, RUN_ID_LABEL, SEQ_LABEL
from eclectus.api.node_probe import MANAGED_BY, MAX_SEQ, NamingError, ProbeId, recognised, selector

IDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=16)
PROBES = st.builds(ProbeId, IDS, IDS, st.integers(0, MAX_SEQ), st.integers(1, MAX_SEQ))
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
MINE = ProbeId("blue", "r1", 7)


def test_a_name_reads_instance_run_and_number():
    assert MINE.name == "eclectus-probe-blue-r1-7"


@given(PROBES)
def test_every_name_is_a_dns_label_and_every_label_a_label(probe):
    assert DNS_LABEL.fullmatch(probe.name)
    assert all(LABEL_VALUE.fullmatch(value) for value in probe.labels.values())


@given(PROBES)
def test_a_pod_is_recognised_as_the_probe_it_was_created_for(probe):
    assert recognised(probe.name, probe.labels, probe.instance) == probe


@given(PROBES, PROBES)
def test_two_pods_share_a_name_only_as_attempts_of_the_same_run(one, other):
    same = (one.instance, one.run, one.seq) == (other.instance, other.run, other.seq)
    assert (one.name == other.name) == same


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("", "r", 1), "instance ''"),
        (("a-b", "r", 1), "instance 'a-b'"),
        (("a", "R", 1), "run 'R'"),
        (("a", "r" * 17, 1), "1 to 16 lower-case letters and digits"),
        (("a", "r", -1), "seq -1: must be 0"),
        (("a", "r", MAX_SEQ + 1), "seq"),
        (("a", "r", 1, 0), "attempt 0: must be 1"),
    ],
)
def test_an_id_that_cannot_be_part_of_a_name_is_rejected(fields, message):
    with pytest.raises(NamingError, match=re.escape(message)):
        ProbeId(*fields)


@pytest.mark.parametrize(
    ("name", "labels", "reason"),
    [
        ("nginx", MINE.labels, "the name is not"),
        ("eclectus-probe-blue-r1", MINE.labels, "the name is not"),
        ("eclectus-probe-blue-r1-07", MINE.labels, "the name is not"),
        (MINE.name, {}, "a prefix alone proves nothing"),
        (MINE.name, {**MINE.labels, MANAGED_BY: "Helm"}, "a prefix alone proves nothing"),
        (MINE.name, {**MINE.labels, INSTANCE_LABEL: "green"}, "it belongs to instance 'green'"),
        ("eclectus-probe-green-r1-7", MINE.labels, "the name says 'green'"),
        (
            MINE.name,
            {**MINE.labels, RUN_ID_LABEL: "r2"},
            "label eclectus.dev/run-id is 'r2' and the name says 'r1'",
        ),
        (MINE.name, {**MINE.labels, SEQ_LABEL: "8"}, "label eclectus.dev/seq is '8' and the name says '7'"),
        (MINE.name, {**MINE.labels, ATTEMPT_LABEL: "two"}, "is 'two' and no number"),
        (MINE.name, {**MINE.labels, ATTEMPT_LABEL: "0"}, "attempt 0"),
        ("eclectus-probe-blue-r1-9999999999", MINE.labels, "seq 9999999999"),
    ],
)
def test_a_pod_that_only_looks_like_ours_is_not(name, labels, reason):
    found = recognised(name, labels, "blue")
    assert isinstance(found, str)
    assert reason in found


def test_the_selector_matches_this_instances_pods():
    terms = dict(term.split("=") for term in selector("blue").split(","))
    assert terms.items() <= MINE.labels.items()
    assert not terms.items() <= ProbeId("green", "r1", 7).labels.items()
