"""`eclectus explain … --what-if CHANGE --as-policy NAME`: what people and programs read."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from builders import make_node, make_task
from eclectus.cli.explain.explained_text import what_if_lines
from eclectus.cli.explain.transport import Asked
from eclectus.cli.main import program
from eclectus.model.events import TaskSeen
from eclectus.model.explanation import Candidate, PodExplanation, PolicyAnswer, WhatIfExplanation
from eclectus.model.objects import Taint
from taped_world import TapedWorld

STORIES = Path(__file__).parents[1] / "explained"
PROFILE = "place: {policy: least-allocated}, relieve: {policy: preemption}"


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tainted nodes, one that is full of `web`, and `big`, which fits on none of them."""
    path = tmp_path_factory.mktemp("tapes") / "run.tape.gz"
    nodes = [make_node(f"gpu-{at}", cpu=4 + at, taints=(Taint("gpu"),)) for at in range(2)]
    with TapedWorld(path, PROFILE, *nodes, make_node("plain", cpu=2)) as world:
        world.add(make_task("web", cpu=2, priority=100))
        world.add(make_task("big", cpu=1.5))
        world.step(TaskSeen(make_task("gone", node="gpu-0")), after=5.0)
    return path


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(program, ["explain", *map(str, arguments)])
    return result.exit_code, f"{result.output}{result.exception or ''}"


@pytest.mark.parametrize(
    ("asked", "story"),
    [
        (["--what-if", "node=gpu-0,taint-=gpu", "--what-if", "node=gpu-1,taint-=gpu"], "what-if-placed"),
        (["--what-if", "toleration+=gpu,request.cpu=8"], "what-if-no-room"),
        (["--what-if", "delete-pod=web", "--as-policy", "uniform"], "what-if-uniform"),
        (["--what-if", "delete-pod=default/web", "--as-policy", "sparrow"], "what-if-node-queues"),
    ],
)
def test_what_a_person_reads(tape: Path, asked: list[str], story: str) -> None:
    """Review the difference after `ECLECTUS_REWRITE_STORIES=1`, which writes the texts of now."""
    code, text = run("pod/big", "--from", tape, *asked)
    assert code == 0, text
    path = STORIES / f"{story}.txt"
    if os.environ.get("ECLECTUS_REWRITE_STORIES"):
        path.write_text(text)
    assert text == path.read_text()


def test_a_program_reads_json(tape: Path) -> None:
    found = json.loads(run("pod/big", "--from", tape, "--what-if", "delete-pod=web", "-o", "json")[1])
    assert (found["withRoomBefore"], found["withRoom"], found["placement"]["node"]) == (0, 1, "plain")
    assert found["rules"] == [{"rule": "NodeResourcesFit", "refusedBefore": 1, "refused": 0}]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["pod/big", "--what-if", "colour=red"], 2, "colour=red: unknown; known are: request.RESOURCE="),
        (["pod/big", "--as-policy", "nobody"], 2, "there is no Place policy 'nobody'"),
        (["node/plain", "--what-if", "priority=1"], 2, "ask about a pod, not about a node"),
        (["job/sort", "--as-policy", "kube"], 2, "ask about a pod, not about a job"),
        (["pod/big", "--what-if", "node=q,cordon=true"], 1, "there is no node 'q'; there are gpu-0, "),
        (["pod/web", "--what-if", "priority=1"], 1, "default/web is not one that waits for this scheduler"),
    ],
)
def test_what_cannot_be_asked(tape: Path, arguments: list[str], code: int, message: str) -> None:
    found, text = run(*arguments, "--from", tape)
    assert found == code
    assert message in text


def test_a_scheduler_is_not_asked_what_is_wrong_already(kubeconfig: Path) -> None:
    found, text = run("pod/big", "--what-if", "colour=red", "--kubeconfig", kubeconfig)
    assert found == 2
    assert "colour=red: unknown" in text


def test_the_path_on_the_schedulers_server() -> None:
    assert Asked().path == ""
    asked = Asked(("node=n,taint+=a=b:NoExecute", "priority=1"), "kube")
    assert asked.path == (
        "/what-if?whatIf=node%3Dn%2Ctaint%2B%3Da%3Db%3ANoExecute&whatIf=priority%3D1&asPolicy=kube"
    )


def test_draws_are_shown_where_a_policy_draws() -> None:
    answer = PolicyAnswer("pot", "places", "n", "", (Candidate("n", None, 3), Candidate("m", None, 1)), 4)
    pod = PodExplanation(namespace="default", name="a", state="active", summary="")
    found = WhatIfExplanation(
        changes=(), summary="", with_room_before=2, with_room=2, rules=(), placement=answer, pod=pod
    )
    lines = list(what_if_lines(found))
    assert [line.split() for line in lines[-3:]] == [
        ["NODE", "CHOSEN"],
        ["n", "3", "of", "4", "times"],
        ["m", "1", "of", "4", "times"],
    ]
