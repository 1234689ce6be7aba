"""Questions as users write them: what is wrong is named, and what is known instead."""

from __future__ import annotations

import pytest

from builders import make_node, make_task
from eclectus.config.changes import CHANGES_MOST, CHARACTERS_MOST, NODES_MOST
from eclectus.config.what_if import read_question
from eclectus.model.changes import AddNodes, ChangeNode, ChangeTask, DeletePod
from eclectus.model.errors import QuestionError
from eclectus.model.objects import Taint, Toleration


def test_each_text_is_one_change_in_its_order() -> None:
    texts = ["delete-pod=web", "delete-pod=shop/db", "node=n,cordon=true", "add-node-like=n", "priority=3"]
    found = read_question(texts, "least-allocated", "team")
    assert [type(each) for each in found.changes] == [DeletePod, DeletePod, ChangeNode, AddNodes, ChangeTask]
    assert found.deleted_pods == (DeletePod("team", "web"), DeletePod("shop", "db"))
    assert found.words == tuple(texts)
    assert str(found.policy) == "place/least-allocated"
    assert found.is_about_nodes


def test_a_question_about_the_pod_alone_names_no_node() -> None:
    found = read_question(["request.cpu=1"], "", "team")
    assert (found.is_about_nodes, found.changes_the_task_alone, found.policy) == (False, True, None)


def test_the_number_of_added_nodes() -> None:
    (one, many) = read_question(["add-node-like=n", "add-node-like=n,count=3,cordon=true"], "", "d").changes
    assert isinstance(one, AddNodes)
    assert isinstance(many, AddNodes)
    assert (one.number, many.number, len(many.edits)) == (1, 3, 1)


def test_a_taint_takes_the_place_of_one_with_its_key_and_effect() -> None:
    node = make_node("n", taints=(Taint("t", "a"), Taint("t", "a", "NoExecute")))
    (change,) = read_question(["node=n,taint+=t=b"], "", "d").changes
    assert isinstance(change, ChangeNode)
    assert change.edits[0](node).taints == (Taint("t", "a", "NoExecute"), Taint("t", "b"))


def test_names_may_have_dots_slashes_and_equal_signs_behind_the_first() -> None:
    (change,) = read_question(["node=a.b,label+=example.com/x=y=z"], "", "d").changes
    assert isinstance(change, ChangeNode)
    assert change.node == "a.b"
    assert dict(change.edits[0](make_node("a.b")).labels) == {"example.com/x": "y=z"}


def test_the_defaults_of_a_pod_without_requests_stay() -> None:
    task = make_task("a", cpu=0)
    (change,) = read_question(["request.memory=1Gi,toleration+=t:NoExecute"], "", "d").changes
    assert isinstance(change, ChangeTask)
    requested, tolerating = (edit(task).spec for edit in change.edits)
    assert (requested.requests, requested.score_requests) == ((("memory", 2**30),), (100, 2**30))
    assert tolerating.tolerations == (Toleration("t", "Exists", "", "NoExecute"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node=n", "node=n: say what would be other about it; known are: taint+=, taint-=, label+="),
        ("node=,cordon=true", "node=: a name is missing"),
        ("node=n,colour=red", "colour=red: unknown; known are: taint+=, taint-=, label+=, label-=, cordon="),
        ("node=n,request.cpu=1", "request.cpu=1: unknown; known are: taint+="),
        ("node=n,cordn=true", "cordn=true: unknown; did you mean 'cordon'?"),
        ("nod=n,cordon=true", "nod=n: unknown; did you mean 'node'?"),
        (
            "colour=red",
            "known are: request.RESOURCE=, selector-=, toleration+=, priority=; what is not about",
        ),
        ("taint-=gpu", "begins with node=, add-node-like=, delete-pod="),
        ("cordon", "'cordon' is not KEY=VALUE"),
        ("", "'' is not KEY=VALUE"),
        ("node=n,cordon=yes", "cordon=yes: must be true or false"),
        ("node=n,taint+=:NoSchedule", "the key of a taint is missing"),
        ("node=n,taint+=t:NoSchedul", "there is no effect 'NoSchedul'; did you mean 'NoSchedule'?"),
        ("node=n,label+=zone", "label+=zone: must be label+=KEY=VALUE"),
        ("node=n,allocatable.cpu=lots", "allocatable.cpu=lots: 'lots' is not a quantity such as 250m"),
        ("request.cpu=-1", "request.cpu=-1: '-1' is negative"),
        ("request.=1", "'' is no resource that nodes have"),
        ("request.cores=1", "'cores' is no resource that nodes have, such as cpu or memory"),
        ("priority=high", "priority=high: must be a whole number from -2147483648 to 2147483647"),
        (f"add-node-like=n,count={NODES_MOST + 1}", f"must be a whole number from 1 to {NODES_MOST}"),
        ("add-node-like=n,count=0", "must be a whole number from 1"),
        ("delete-pod=x,cordon=true", "delete-pod=x: nothing may follow, but cordon=true does"),
        ("node=n,cordon=true" + "x" * CHARACTERS_MOST, f"is too long; at most {CHARACTERS_MOST}"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(QuestionError) as raised:
        read_question([text], "", "default")
    assert message in str(raised.value)


def test_an_unknown_policy_names_the_nearest() -> None:
    with pytest.raises(QuestionError, match=r"no Place policy 'least-alocated'; did you mean 'least-alloc"):
        read_question([], "least-alocated", "default")
    with pytest.raises(QuestionError, match=r"no Place policy '5'; known are: best-fit, clwl"):
        read_question([], "5", "default")


def test_a_question_is_bounded_and_not_empty() -> None:
    with pytest.raises(QuestionError, match=f"at most {CHANGES_MOST} are allowed"):
        read_question(["priority=1"] * (CHANGES_MOST + 1), "", "default")
    with pytest.raises(QuestionError, match="nothing is asked"):
        read_question([], "", "default")
