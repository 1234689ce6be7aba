"""Explanations travel as JSON: what the scheduler encodes, the command line decodes to an equal value."""

import msgspec
import pytest

from eclectus.model.explanation import (
    AlikePods,
    Attempts,
    EvictionCandidate,
    FilterStep,
    Funnel,
    JobExplanation,
    Lack,
    NearMiss,
    NodeExplanation,
    Nomination,
    OtherPod,
    Placement,
    PodExplanation,
    Preemption,
    Refusal,
    ResourceUse,
    Waiting,
)
from eclectus.model.learned import LearnedNode, LearnedWork

OTHER = OtherPod("default", "x", -5, leaving=True)
POD = PodExplanation(
    namespace="default",
    name="a",
    state="unschedulable",
    summary="no node has room",
    age=3.5,
    waiting=Waiting("no node has room", since=2.0, nodes=("n1",)),
    nomination=Nomination("n1", 1.0, (OTHER,)),
    attempts=Attempts(1, 2, "0/1 nodes are available", 0.5),
    funnel=Funnel(
        1, (FilterStep("NodeResourcesFit", 0, (Refusal("Insufficient cpu", 1),)),), 1, 0, "0/1 nodes"
    ),
    nearest=(NearMiss("n1", (Lack("NodeResourcesFit", "cpu", 300),), (OTHER,)),),
    preemption=Preemption("possible", "it fits without others", 1, (EvictionCandidate("n1", (OTHER,)),)),
    placement=Placement("n1", 1.0),
)
NODE = NodeExplanation(
    name="n1",
    conditions=("full", "dead"),
    summary="it is full",
    resources=(ResourceUse("cpu", 1000, 900),),
    pods=(OTHER,),
    learned=LearnedNode("n1", 3, 0.0, "dead", 0.5, 0.9, (LearnedWork("default/train", 0.5, 3, 0.9),)),
)
JOB = JobExplanation(
    namespace="default",
    name="j",
    known=True,
    summary="2 of its pods wait",
    waiting_pods=2,
    groups=(AlikePods("gated", 2, "it has scheduling gates: g", "", "a"),),
)


@pytest.mark.parametrize("explanation", [POD, NODE, JOB])
def test_an_explanation_is_equal_after_encoding_and_decoding(explanation):
    assert msgspec.json.decode(msgspec.json.encode(explanation), type=type(explanation)) == explanation


def test_fields_are_named_as_in_kubernetes_objects():
    fields = msgspec.json.decode(msgspec.json.encode(POD))
    assert {"schedulerName", "summary", "nearest"} <= fields.keys()
    assert fields["funnel"]["withRoom"] == 0
    assert fields["nearest"][0]["fitsWithout"] == [
        {"namespace": "default", "name": "x", "priority": -5, "leaving": True, "nominated": False}
    ]


def test_an_unknown_state_is_refused():
    with pytest.raises(msgspec.ValidationError, match="state"):
        msgspec.json.decode(b'{"namespace":"a","name":"b","state":"lost","summary":"x"}', type=PodExplanation)
