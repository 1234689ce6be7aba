from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.api.common import time_seconds
from eclectus.api.names import ATTEMPT_LABEL
from eclectus.api.node_probe import ProbeId
from eclectus_operator.node_probes.run_steps import join
from eclectus_operator.observed import Metadata, Pod

OURS, OTHER = "blue", "green"
NOW, GRACE = 1000.0, 60.0


def probe(seq, instance=OURS, attempt=1):
    return ProbeId(instance, "r1", seq, attempt)


def pod(one, *, labels=None, age=3600.0, deleting=False):
    meta = Metadata(
        one.name,
        uid=f"uid-{one.name}",
        labels=one.labels if labels is None else labels,
        creation_timestamp=datetime.fromtimestamp(NOW - age, UTC).isoformat(),
        deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
    )
    return Pod(meta)


def settle(recorded, pods):
    return join(recorded, pods, OURS, NOW, GRACE)


def test_the_golden_case():
    """State {a, b, c}; cluster {a, b, d ours, e prefix only, f another instance's}."""
    a, b, c = probe(1), probe(2), probe(3)
    d, e, f = pod(probe(4)), pod(probe(5), labels={}), pod(probe(6, OTHER))
    pod_a, pod_b = pod(a), pod(b)
    answer = settle([a, b, c], [pod_a, pod_b, d, e, f])
    assert answer.adopted == ((a, pod_a), (b, pod_b))
    assert answer.lost == (c,)
    assert answer.orphans == (d,)
    assert (answer.young, answer.taken) == ((), ())


def test_a_pod_created_before_its_result_was_recorded_is_adopted():
    answer = settle([probe(1)], [pod(probe(1), age=0.0)])
    assert len(answer.adopted) == 1
    assert answer.lost == ()


@pytest.mark.parametrize(("age", "deleted"), [(GRACE, True), (GRACE - 0.1, False), (-5.0, False)])
def test_an_orphan_is_deleted_after_its_grace_period(age, deleted):
    orphan = pod(probe(1), age=age)
    answer = settle([], [orphan])
    assert (answer.orphans, answer.young) == (((orphan,), ()) if deleted else ((), (orphan,)))


def test_a_terminating_orphan_is_not_deleted_again():
    answer = settle([], [pod(probe(1), deleting=True)])
    assert (answer.orphans, answer.young) == ((), ())


def test_a_terminating_orphan_is_silent_when_its_time_is_over():
    orphan = pod(probe(1), deleting=True)
    ended = time_seconds(orphan.metadata.deletion_timestamp)
    for late, silent in ((119.0, ()), (120.0, (orphan,))):
        answer = join([], [orphan], OURS, ended + late, GRACE)
        assert (answer.silent, answer.orphans) == (silent, ())


def test_a_foreign_pod_with_the_name_is_neither_adopted_nor_deleted():
    answer = settle([probe(1)], [pod(probe(1), labels={"app": "theirs"})])
    ((_, reason),) = answer.taken
    assert "a prefix alone proves nothing" in reason
    assert (answer.adopted, answer.orphans, answer.lost) == ((), (), ())


def test_another_attempt_under_the_name_is_not_adopted():
    answer = settle([probe(1)], [pod(probe(1), labels={**probe(1).labels, ATTEMPT_LABEL: "2"})])
    assert [reason for _, reason in answer.taken] == ["it is attempt 2"]


NUMBERS = st.sets(st.integers(0, 20))


@given(intended=NUMBERS, ours=NUMBERS, others=NUMBERS)
def test_every_intent_and_every_own_pod_is_in_one_part_of_the_result(intended, ours, others):
    pods = [pod(probe(seq)) for seq in sorted(ours)] + [pod(probe(seq, OTHER)) for seq in sorted(others)]
    answer = settle([probe(seq) for seq in sorted(intended)], pods)
    assert {one.seq for one, _ in answer.adopted} == intended & ours
    assert {one.seq for one in answer.lost} == intended - ours
    assert {each.metadata.name for each in answer.orphans} == {probe(seq).name for seq in ours - intended}
    assert answer.taken == ()
