"""`eclectus pools`: the tree of Pools, for people and for programs."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from eclectus.api.names import POOLS_PATH
from eclectus.cli import cluster_commands
from eclectus.cli.main import program
from eclectus.cli.pools import command

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def pool(name: str, spec: Any = None, status: Any = None) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec or {}, "status": status or {}}


def ready(reason: str, message: str = "") -> dict[str, Any]:
    status = "True" if reason == "Accepted" else "False"
    time = "2026-03-01T11:00:00Z"
    kind = {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": time,
    }
    return {"conditions": [kind]}


TREE = [
    pool("vision", {"parent": "research", "policy": "fifo", "maxRunningJobs": 3}, {"runningJobs": 2}),
    pool(
        "research",
        {
            "weight": 2,
            "minShare": {"amounts": {"cpu": "40", "nvidia.com/gpu": 8}},
            "maxShare": {"percent": 60},
        },
        {
            "held": {"cpu": "2500m", "memory": "1073741824"},
            "share": {"cpu": "40"},
            "waitingPods": 7,
            "belowMinShareSince": "2026-03-01T11:30:00.000000Z",
            **ready("Accepted"),
        },
    ),
    pool("lost", {"parent": "gone"}, ready("NoSuchParent", "there is no Pool gone")),
    pool("default", {"suspend": True}),
]


def table(*objects: dict[str, Any], wide: bool = False) -> list[str]:
    found, problems = command.read(objects)
    assert problems == []
    return list(command.table(command.rows(found), NOW, wide=wide))


def test_children_stand_below_their_parent_and_those_without_a_way_to_the_top_are_last() -> None:
    lines = table(*TREE)
    assert [line.split("   ")[0] for line in lines[1:5]] == ["default", "research", "  vision", "lost"]
    assert lines[-1] == "lost: there is no Pool gone"


def test_the_resources_that_minima_and_maxima_name_are_shown_and_all_in_the_wide_table() -> None:
    narrow, wide = (next(line for line in table(*TREE, wide=each) if "research" in line) for each in (0, 1))
    assert narrow.split("   ")[:1] == ["research"]
    assert "40 cpu, 8 nvidia.com/gpu" in narrow
    assert "2.5 cpu   60%" in narrow
    assert "30m" in narrow
    assert "Accepted" in narrow
    assert "1Gi memory" not in narrow
    assert "2.5 cpu, 1Gi memory" in wide


def test_jobs_and_the_state_of_a_suspended_pool() -> None:
    wide = table(*TREE, wide=True)
    assert "2 of 3   fifo" in next(line for line in wide if "vision" in line)
    assert next(line for line in wide if line.startswith("default")).endswith("Suspended")


def test_a_pool_that_only_tries_out_what_it_would_take_says_so() -> None:
    lines = table(pool("a", {"preemption": {"dryRun": True}}, ready("Accepted")))
    assert lines[1].endswith("Accepted, DryRun")


def test_one_pool_and_what_is_below_it() -> None:
    found, _ = command.read(TREE)
    assert [row["name"] for row in command.rows(found, "research")] == ["research", "vision"]
    with pytest.raises(click.UsageError, match=r"there is no Pool 'visoin'; did you mean 'vision'\?"):
        command.formatted(found, "table", "visoin")
    with pytest.raises(click.UsageError, match="there is no Pool 'a'; there is none"):
        command.formatted([], "table", "a")


def test_pools_whose_parents_form_a_circle_are_listed_once() -> None:
    found, _ = command.read([pool("a", {"parent": "b"}), pool("b", {"parent": "a"})])
    assert [row["name"] for row in command.rows(found)] == ["a", "b"]
    assert [row["name"] for row in command.rows(found, "a")] == ["a", "b"]


def test_a_chain_of_pools_far_deeper_than_any_that_counts_is_listed() -> None:
    chain = [pool(f"p{at}", {"parent": f"p{at - 1}"} if at else None) for at in range(2_000)]
    assert [row["depth"] for row in command.rows(command.read(chain)[0])] == list(range(2_000))


def test_one_that_cannot_be_read_is_named_and_hides_no_other() -> None:
    found, problems = command.read([pool("bad", {"weight": "heavy"}), *TREE])
    assert len(found) == len(TREE)
    (problem,) = problems
    assert "bad" in problem
    assert "weight" in problem


def test_for_programs() -> None:
    found, _ = command.read(TREE)
    printed = command.formatted(found, "json")
    assert json.loads(printed) == yaml.safe_load(command.formatted(found, "yaml"))
    research = next(row for row in json.loads(printed) if row["name"] == "research")
    assert (research["weight"], research["waitingPods"], research["ready"]) == (2, 7, True)
    assert research["held"] == {"cpu": "2500m", "memory": "1073741824"}


def test_without_pools_that_is_said() -> None:
    assert command.formatted([], "table").startswith("there are no Pools")
    assert command.formatted([], "json") == "[]"


SINCE = "2026-03-01T11:59:00.000000Z"  # a minute ago


def amounts(held: int, share: int, **more: Any) -> dict[str, Any]:
    return {"held": {"cpu": str(held)}, "share": {"cpu": str(share)}, **more}


def claimant(seconds: float | None = 30.0, **spec: Any) -> dict[str, Any]:
    rules = {} if seconds is None else {"minShareSeconds": seconds}
    return pool("small", {"preemption": rules, **spec}, amounts(1, 4, belowMinShareSince=SINCE))


GREEDY = pool("greedy", {}, amounts(9, 5))
MODEST = pool("modest", {}, amounts(2, 5))
KEPT = pool("kept", {"preemption": {"allowFrom": False}}, amounts(9, 5))
OTHER = pool("other", {}, {"held": {"memory": "9"}, "share": {"memory": "5"}})


def taken(*objects: dict[str, Any]) -> list[str] | None:
    rows = command.rows(command.read(objects)[0])
    return next(row["takesFrom"] for row in rows if row["name"] == "small")


def cell(*objects: dict[str, Any]) -> str:
    lines = table(*objects, wide=True)
    start = lines[0].index("TAKES FROM")
    end = lines[0].index("STARVED")
    return next(line[start:end].strip() for line in lines if "small" in line)


def test_a_starved_pool_takes_from_leaves_above_their_share_of_what_it_lacks() -> None:
    assert taken(claimant(), GREEDY, MODEST, KEPT, OTHER) == ["greedy"]
    inner = pool("inner", {}, amounts(9, 5))
    below = [pool("a", {"parent": "inner"}, amounts(6, 3)), pool("b", {"parent": "inner"}, amounts(3, 3))]
    assert taken(claimant(), inner, *below) == ["a"]
    within = pool("inner", {}, amounts(5, 5))
    assert taken(claimant(), within, *below) == [], "the branch has no more than its share"


def test_it_takes_from_siblings_of_those_above_it_too() -> None:
    parent = pool("team", {}, amounts(2, 6))
    own = pool("twin", {"parent": "team"}, amounts(3, 1))
    assert taken(claimant(parent="team"), parent, own, GREEDY) == ["twin", "greedy"]


def test_when_it_takes_and_whether_it_ever_does() -> None:
    assert cell(claimant(), GREEDY) == "greedy"
    assert cell(claimant(75.0), GREEDY) == "greedy in 15s"
    assert cell(claimant(None), GREEDY) == "never"
    assert cell(claimant(), MODEST) == "nobody"
    many = [pool(f"g{at}", {}, amounts(9, 5)) for at in range(5)]
    assert cell(claimant(), *many) == "g0, g1, g2 and 2 more"
    assert cell(pool("small", {}, amounts(1, 4)), GREEDY) == "-"


def test_the_claim_that_is_due_first_counts() -> None:
    later = "2026-03-01T11:59:50.000000Z"
    rules = {"minShareSeconds": 30.0, "fairShareSeconds": 60.0}
    both = amounts(1, 4, belowMinShareSince=later, belowFairShareSince=SINCE)
    assert cell(pool("small", {"preemption": rules}, both), GREEDY) == "greedy"


def test_circles_of_parents_end() -> None:
    circle = [pool("x", {"parent": "y"}, amounts(9, 5)), pool("y", {"parent": "x"}, amounts(9, 5))]
    assert taken(claimant(parent="x"), *circle) is not None


def test_of_one_pool_it_is_said_from_which_of_all_it_takes() -> None:
    (row,) = command.rows(command.read([claimant(), GREEDY])[0], "small")
    assert (row["takesFrom"], row["takesAfterSeconds"]) == (["greedy"], 30.0)


def test_with_watch_it_is_printed_again_after_each_change_until_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path
) -> None:
    """Of three looks at the cluster two find the same."""
    one, more = [pool("a")], [pool("a"), pool("b", {"parent": "a"})]
    looks = iter([one, one, more])
    asked = list[str]()

    async def list_objects(_: object, path: str, *__: object) -> list[dict[str, Any]]:
        asked.append(path)
        found = next(looks, None)
        if found is None:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr("eclectus.kubeclient.client.list_objects", list_objects)
    monkeypatch.setattr(cluster_commands, "WATCH_SECONDS", 0.0)
    result = CliRunner().invoke(program, ["pools", "--watch", "--kubeconfig", str(kubeconfig)])
    assert result.exit_code == 0
    names = [line.split("   ")[0] for line in result.stdout.splitlines()]
    assert names == ["POOL", "a", "", "POOL", "a", "  b", ""]
    assert asked == [POOLS_PATH] * 4
    looks = iter([one])
    result = CliRunner().invoke(program, ["pools", "--kubeconfig", str(kubeconfig)])
    assert (len(result.stdout.splitlines()), len(asked)) == (2, 5), "without it, once"
