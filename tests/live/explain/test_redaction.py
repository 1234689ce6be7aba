"""What is left of an answer for a reader who may not read pods of all namespaces."""

import msgspec
import pytest
from msgspec.structs import replace

from eclectus.kubeclient.serving.access import ReadObject
from eclectus.live.pages import LIST_POOLS, redacted, rights_needed
from eclectus.model.explanation import (
    EvictionCandidate,
    Funnel,
    Lack,
    NearMiss,
    NodeExplanation,
    Nomination,
    OtherPod,
    PodExplanation,
    PoolAhead,
    PoolsAhead,
    Preemption,
)
from eclectus.model.learned import LearnedNode, LearnedWork

OWN_PODS, SECRET_PODS = ReadObject("pods", "own"), ReadObject("pods", "secret")
OWN, SECRET = OtherPod("own", "beside", 5), OtherPod("secret", "hidden", 7, leaving=True)
NAMELESS = OtherPod("", "", 7, leaving=True)
POD = PodExplanation(
    namespace="own",
    name="asked",
    state="unschedulable",
    summary="No node has room.",
    nomination=Nomination("n1", 3.0, leaving=(SECRET,)),
    funnel=Funnel(2, (), 2, 0, "0/2 nodes are available: 2 Insufficient cpu."),
    nearest=(NearMiss("n1", (Lack("NodeResourcesFit", "cpu", 300),), fits_without=(OWN, SECRET)),),
    preemption=Preemption(
        "possible", "n1 would do.", candidates=(EvictionCandidate("n1", (SECRET, OWN), not_listed=1),)
    ),
)
NODE = NodeExplanation(
    name="n1",
    conditions=("full",),
    summary="Nothing is left of cpu.",
    pods=(OWN, SECRET),
    pod_count=2,
    nominated=(SECRET,),
    learned=LearnedNode(
        "n1",
        epoch=1,
        at=0.0,
        state="live",
        speed=1.5,
        confidence=0.9,
        work=(
            LearnedWork("secret/app", 1.0, 5, 0.9),
            LearnedWork("shared", 2.0, 5, 0.9),
            LearnedWork("own/app", 3.0, 5, 0.9),
        ),
    ),
)


@pytest.mark.parametrize("answer", [POD, NODE])
def test_all_namespaces_that_an_answer_names_are_found(answer):
    assert rights_needed(answer) == {OWN_PODS, SECRET_PODS}


@pytest.mark.parametrize("answer", [POD, NODE])
def test_who_may_read_all_gets_the_whole_answer(answer):
    assert redacted(answer, lambda _: True) == answer


@pytest.mark.parametrize("answer", [POD, NODE])
def test_of_a_namespace_that_may_not_be_read_no_name_is_left(answer):
    text = msgspec.json.encode(redacted(answer, {OWN_PODS}.__contains__))
    assert b"secret" not in text
    assert b"hidden" not in text
    assert b"beside" in text


def test_a_pod_without_its_name_still_counts():
    shown = redacted(POD, {OWN_PODS}.__contains__)
    assert shown.nearest[0].fits_without == (OWN, NAMELESS)
    assert shown.preemption.candidates == (EvictionCandidate("n1", (NAMELESS, OWN), not_listed=1),)
    assert shown.nomination.leaving == (NAMELESS,)
    assert (shown.funnel, shown.name, shown.namespace) == (POD.funnel, "asked", "own")


def test_of_learned_speeds_those_of_readable_namespaces_and_of_shared_classes_are_left():
    shown = redacted(NODE, {OWN_PODS}.__contains__)
    assert [each.workload for each in shown.learned.work] == ["shared", "own/app"]
    assert (shown.learned.speed, shown.learned.state) == (1.5, "live")
    assert (shown.pods, shown.nominated, shown.pod_count) == ((OWN, NAMELESS), (NAMELESS,), 2)


AHEAD = (
    PoolsAhead("", (PoolAhead("secret-lab", waiting_pods=2, below_minimum=True),), not_listed=1),
    PoolsAhead("default", (PoolAhead("default/own", "own", 3), PoolAhead("default/secret", "secret", 4))),
)


def test_pools_are_named_to_who_may_list_them_and_those_of_a_namespace_to_who_may_read_its_pods():
    answer = replace(POD, nomination=None, nearest=(), preemption=None, pools_ahead=AHEAD)
    assert rights_needed(answer) == {LIST_POOLS, OWN_PODS, SECRET_PODS}
    shown = redacted(answer, {OWN_PODS}.__contains__)
    assert b"secret" not in msgspec.json.encode(shown)
    of_root, of_default = shown.pools_ahead
    assert of_root == PoolsAhead("", (PoolAhead("", waiting_pods=2, below_minimum=True),), not_listed=1)
    assert of_default.pools == (PoolAhead("default/own", "own", 3), PoolAhead("", "", 4))
    listing = redacted(answer, {LIST_POOLS}.__contains__).pools_ahead
    assert listing == (AHEAD[0], PoolsAhead("default", (PoolAhead("", "", 3), PoolAhead("", "", 4))))
