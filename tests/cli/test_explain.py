"""`eclectus explain … --from TAPE`: what a person reads of it, and what a program."""

import json
import os
import textwrap
from pathlib import Path

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from msgspec.structs import replace

from builders import make_node, make_task
from eclectus.cli.explain.command import formatted
from eclectus.cli.explain.explained_text import quantity
from eclectus.cli.explain.transport import Target, target_of
from eclectus.cli.main import program
from eclectus.model.events import BudgetSeen, TaskSeen
from eclectus.model.explanation import (
    Lack,
    NearMiss,
    NodeExplanation,
    Nomination,
    OtherPod,
    Placement,
    PodExplanation,
    PoolAhead,
    PoolsAhead,
    Waiting,
)
from eclectus.model.learned import ConstraintDemand, LearnedNode, LearnedWork, NodePrice
from eclectus.model.objects import Budget, Requirement, Taint
from taped_world import TapedWorld

PROFILE = "place: {policy: least-allocated}, relieve: {policy: preemption}"
WEB = (("app", "web"),)
STORIES = Path(__file__).parent / "explained"
PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
POD, NODE = Target("pod", "a", "default"), Target("node", "n")


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nodes: one that is small, one that is tainted, and one that is full from second 2 on.

    At 10 s `big` comes, for which nothing may leave; at 15 s three pods of the job `sort`, which are too
    large for any node; at 20 s `gated` and `foreign`.
    """
    path = tmp_path_factory.mktemp("tapes") / "run.tape.gz"
    nodes = (
        make_node("small", cpu=1),
        make_node("tainted", cpu=8, taints=(Taint("gpu"),)),
        make_node("large", cpu=4),
    )
    with TapedWorld(path, PROFILE, *nodes) as world:
        budget = Budget("default", "web", (Requirement("app", "In", ("web",)),), allowed=0)
        world.step(BudgetSeen(budget), after=2.0)
        world.add(make_task("web", cpu=2.7, priority=100, labels=WEB, created=1.0))
        world.step(after=8.0)
        world.add(make_task("big", cpu=1.5, memory=3, priority=5, created=8.0))
        world.sleep(5)
        labels = (("batch.kubernetes.io/job-name", "sort"),)
        world.add(*(make_task(f"sort-{at}", cpu=9, job="uid-sort", labels=labels) for at in range(3)))
        world.step(
            TaskSeen(make_task("gated", gates=("approval",))),
            TaskSeen(make_task("foreign", profile="other")),
            after=5.0,
        )
    return path


def invoke(*arguments: object) -> str:
    result = CliRunner().invoke(program, ["explain", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(program, ["explain", *map(str, arguments)])
    return result.exit_code, f"{result.output}{result.exception or ''}"


@pytest.mark.parametrize(
    ("what", "story"),
    [
        ("pod/big", "pod-unschedulable"),
        ("pod/big --what-if request.cpu=1200m", "pod-what-if"),
        ("pod/web", "pod-bound"),
        ("pod/gated", "pod-gated"),
        ("job/sort", "job"),
        ("node/large", "node"),
        ("node/tainted", "node-tainted"),
    ],
)
def test_what_a_person_reads(tape: Path, what: str, story: str) -> None:
    """Review the difference after `ECLECTUS_REWRITE_STORIES=1`, which writes the texts of now."""
    path, text = STORIES / f"{story}.txt", invoke(*what.split(), "--from", tape)
    if os.environ.get("ECLECTUS_REWRITE_STORIES"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("story", ["pod-unschedulable", "pod-what-if"])
def test_the_page_shows_what_is_printed(story: str) -> None:
    shown = textwrap.indent((STORIES / f"{story}.txt").read_text().strip(), "    ")
    assert shown in PAGE.read_text()


@pytest.mark.parametrize(
    ("what", "state", "why"),
    [
        ("po/gated", "gated", "it has scheduling gates: approval"),
        (
            "pods/foreign",
            "waits for another scheduler",
            "its schedulerName is other, and this scheduler serves eclectus",
        ),
        ("pod/nobody", "unknown", "this scheduler knows no such pod"),
        ("no/tainted", "tainted", "it takes only pods that tolerate gpu:NoSchedule"),
        ("node/nobody", "unknown", "this scheduler knows no such node"),
    ],
)
def test_other_states(tape: Path, what: str, state: str, why: str) -> None:
    lines = invoke(what, "--from", tape).splitlines()
    assert lines[1].split(":")[1].strip() == state
    assert lines[2].split(":", 1)[1].strip().startswith(why)


@pytest.mark.parametrize(
    ("at", "state"),
    [("0", "unknown"), ("2", "bound"), ("5.5", "bound"), ("step:1", "unknown"), ("step:3", "binding")],
)
def test_a_moment_of_the_tape(tape: Path, at: str, state: str) -> None:
    assert json.loads(invoke("pod/web", "--from", tape, "--at", at, "-o", "json"))["state"] == state


def test_ages_count_from_the_moment(tape: Path) -> None:
    found = json.loads(invoke("pod/big", "--from", tape, "--at", "14.5", "-o", "json"))
    assert (found["age"], found["waiting"]["since"]) == (6.5, 4.5)


def test_json_and_yaml_say_the_same(tape: Path) -> None:
    as_json, as_yaml = (invoke("pod/big", "--from", tape, "-o", output) for output in ("json", "yaml"))
    assert json.loads(as_json) == yaml.safe_load(as_yaml)
    assert json.loads(as_json)["funnel"]["steps"][-1] == {
        "rule": "NodeResourcesFit",
        "left": 0,
        "refusals": [{"reason": "Insufficient cpu", "count": 2}],
    }


def test_another_namespace(tape: Path) -> None:
    assert "unknown" in invoke("pod/big", "-n", "elsewhere", "--from", tape)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["big", "--from", "TAPE"], "'big' is none of pod/NAME, node/NAME, job/NAME"),
        (["service/x", "--from", "TAPE"], "'service/x' is none of pod/NAME, node/NAME, job/NAME"),
        (
            ["nod/x", "--from", "TAPE"],
            "'nod/x' is none of pod/NAME, node/NAME, job/NAME; did you mean 'node'?",
        ),
        (["pod/", "--from", "TAPE"], "'pod/' is none of pod/NAME, node/NAME, job/NAME"),
        (["pod/a/b", "--from", "TAPE"], "'pod/a/b' is none of pod/NAME, node/NAME, job/NAME"),
        (["pod/big", "--from", "TAPE", "--at", "soon"], "'soon' is neither seconds after the first step nor"),
        (["pod/big", "--from", "TAPE", "--at", "-1"], "'-1' is neither seconds after the first step nor"),
        (["pod/big", "--from", "TAPE", "--at", "nan"], "'nan' is neither seconds after the first step nor"),
        (["pod/big", "--from", "TAPE", "--at", "step:0"], "'step:0' is neither seconds after the first step"),
        (["pod/big", "--from", "/nowhere"], "'/nowhere' does not exist"),
    ],
)
def test_what_cannot_be_asked(tape: Path, arguments: list[str], message: str) -> None:
    code, text = refused(*(str(tape) if each == "TAPE" else each for each in arguments))
    assert code == 2
    assert message in text


def test_a_step_that_the_tape_does_not_have(tape: Path) -> None:
    code, text = refused("pod/big", "--from", tape, "--at", "step:999")
    assert code == 1
    assert "steps and no step 999" in text


def test_a_tape_without_steps(tmp_path: Path, tape: Path) -> None:
    from eclectus.tape import TapeWriter, read

    with TapeWriter(tmp_path / "empty.tape", read(tape)[0]):
        pass
    code, text = refused("pod/big", "--from", tmp_path / "empty.tape")
    assert code == 1
    assert "has no steps" in text


def test_decisions_that_differ_from_the_tape_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "run.tape"
    with TapedWorld(path, PROFILE, make_node("n")) as world:
        world.add(make_task("a"))
    path.write_text(path.read_text().replace('"node":"n","profile"', '"node":"m","profile"'))
    result = CliRunner().invoke(program, ["explain", "pod/a", "--from", str(path)])
    assert result.exit_code == 0
    assert "note: step 2 was decided otherwise when the tape was recorded" in result.stderr


# -- what a tape does not show ---------------------------------------------------------------------


SHORT = Lack("NodeResourcesFit", "cpu", 1000)


def text_of(explanation: PodExplanation | NodeExplanation) -> list[str]:
    target = NODE if isinstance(explanation, NodeExplanation) else POD
    return formatted(msgspec.json.encode(explanation), target, "table").splitlines()


def test_a_pod_whose_name_is_left_out_is_still_counted() -> None:
    hidden = OtherPod("", "", 7)
    found = text_of(
        PodExplanation(
            namespace="default",
            name="a",
            state="unschedulable",
            summary="no node has room for it",
            nearest=(NearMiss("n", (), (hidden,), not_listed=2), NearMiss("m", (SHORT,), planned=True)),
            nomination=Nomination("n", 3.0, (OtherPod("default", "x", 1, leaving=True),)),
        )
    )
    assert "  n   ; would fit without a pod of another namespace (priority 7), 2 more" in found
    assert "  m   1 cpu short; only because of room that is planned for pods that wait" in found
    (nominated,) = (line for line in found if line.startswith("Nominated"))
    assert nominated.endswith(
        "to node n for 3s; on their way out there: default/x (priority 1, on its way out)"
    )


def test_a_pool_whose_name_is_left_out_is_still_counted() -> None:
    ahead = (
        PoolsAhead("", (PoolAhead("shop", "", 12, below_minimum=True), PoolAhead("")), not_listed=4),
        PoolsAhead("research", (PoolAhead("research/night", "", 1),)),
    )
    found = PodExplanation(
        namespace="default", name="a", state="unschedulable", summary="no node has room", pools_ahead=ahead
    )
    heading, text = text_of(found)[-1].split(":", 1)
    assert (heading, text.strip()) == (
        "Pools ahead",
        "shop (12 pods wait, below its minimum), another pool (0 pods wait), 4 more; in research: "
        "research/night (1 pod waits)",
    )


def test_a_replica_that_does_not_decide_and_a_pod_in_several_queues() -> None:
    waits = Waiting("in the queues of 2 nodes", nodes=("n", "m"), next_check=90.0, group="team", class_pods=3)
    found = text_of(
        PodExplanation(
            namespace="default",
            name="a",
            state="nodeQueue",
            summary="in the queues of 2 nodes",
            deciding=False,
            waiting=waits,
            dead_with_room=("m",),
        )
    )
    fields = dict(line.split(":", 1) for line in found)
    assert fields["Nodes"].strip() == "n, m"
    assert fields["Next check"].strip() == "in 90s"
    assert fields["Queue"].strip() == "0 ahead of group team, in a class of 3"
    assert fields["Scheduler"].strip().startswith("does not decide now")
    assert fields["Believed dead"].strip() == "m: they have room, and are the last choice"


@pytest.mark.parametrize(("seconds", "words"), [(42.0, "42s more"), (0.0, "less than it has waited")])
def test_how_much_longer_a_pod_is_expected_to_wait(seconds: float, words: str) -> None:
    pod = PodExplanation(namespace="default", name="a", state="unschedulable", summary="no node has room")
    heading, text = text_of(replace(pod, expected_wait=seconds))[-1].split(":", 1)
    assert (heading, text.strip()) == ("Expected", words)


def test_for_how_long_a_slot_is_held_beside_a_run() -> None:
    pod = PodExplanation(namespace="default", name="a", state="unschedulable", summary="no node has room")
    heading, text = text_of(replace(pod, turnaround=0.3123))[-1].split(":", 1)
    assert (heading, text.strip()) == ("Turnaround", "a slot is held for 0.31 s beside the run of such a pod")


def test_what_is_learned_of_a_node() -> None:
    work = LearnedWork("default/sort", 0.25, 8, 0.9, price=2.5), LearnedWork("default/web", 2.0, 4, 0.5)
    learned = LearnedNode("n", 3, 0.0, "live", 0.5, 0.8, work)
    found = text_of(
        NodeExplanation(
            name="n",
            conditions=("full",),
            summary="nothing is left of cpu",
            learned=learned,
            price=0.9,
            background_load=0.25,
            queued=2,
            nominated=(OtherPod("default", "x"),),
        )
    )
    assert found == [
        "Node:        n",
        "State:       full",
        "Why:         nothing is left of cpu",
        "Load:        25% of it is used beyond the requests of its pods",
        "Nominated:   default/x (priority 0)",
        "Queue:       2 pods in its queue",
        "Price:       0.90: demand over supply of the constraints that it satisfies",
        "Learned:     live; 0.50 of a typical node, confidence 0.80",
        "",
        "WORK           TASKS/S   SAMPLES   CONFIDENCE   PRICE",
        "default/sort   0.25      8         0.90         2.5",
        "default/web    2         4         0.50         -",
    ]


def test_what_others_need_the_nodes_of_a_pod_for() -> None:
    pod = PodExplanation(namespace="default", name="a", state="unschedulable", summary="no node has room")
    waits = replace(pod, constraint_demand=ConstraintDemand("arch=arm", 0.625, 0.5))
    placed = replace(pod, state="bound", placement=Placement("n", 3.0, price=NodePrice(0.9, 0.1)))
    better_used = replace(placed, placement=Placement("n", 3.0, price=NodePrice(0.9, 0.1, work=2.5)))
    texts = [text_of(each)[-1].split(":", 1)[1].strip() for each in (waits, placed, better_used)]
    assert texts == [
        "arch=arm: pods with these demand 62% of all nodes, and may use 50%",
        "0.90 by scarcity, 0.10 on the cheapest node that could run it",
        "0.90 by scarcity, 0.10 on the cheapest node that could run it; "
        "it counts as 2.5 times as slow, being better used for other work",
    ]


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 300, "300m"),
        ("cpu", 2000, "2"),
        ("cpu", -1500, "-1500m"),
        ("memory", 1536 * 2**20, "1.5Gi"),
        ("memory", 512, "512"),
        ("hugepages-2Mi", 2**21, "2Mi"),
        ("nvidia.com/gpu", 3, "3"),
    ],
)
def test_quantities(resource: str, amount: int, text: str) -> None:
    assert quantity(resource, amount) == text


def test_a_target_is_spelled_as_for_kubectl() -> None:
    assert str(target_of("po/a", "team")) == "pod team/a"
    assert str(target_of("no/n", "team")) == "node n"
    assert str(target_of("dj/j", "team")) == "job team/j"
