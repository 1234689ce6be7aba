"""A pod whose label names a pool that does not take it is elsewhere, and that is said once on the pod."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.accounts.pool_tree import SYSTEM_PRIORITY
from eclectus.engine.minute_allowance import MINUTE_MOST
from eclectus.engine.pool_refusals import NAMESPACE_MOST, SAID_AFTER_SECONDS
from eclectus.explain.pod import explain_pod
from eclectus.model.commands import Warn
from eclectus.model.events import NamespaceSeen, NodeSeen, PoolGone, PoolSeen, Resumed, TaskGone, TaskSeen
from eclectus.model.pool import Pool
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit


class Cluster:
    """One small node; `at` steps the engine and gives the warnings of the step."""

    def __init__(self, *pools: Pool) -> None:
        self.engine = make_engine(BestFit(), order=FairPools())
        self.at(0.0, Resumed(), NodeSeen(make_node("n", cpu=1)), *map(PoolSeen, pools))

    def at(self, now: float, *events: Any) -> list[tuple[str, str]]:
        commands = self.engine.step(events, now)
        return [(each.name, each.message) for each in commands if isinstance(each, Warn)]


def asking(name: str, pool: str = "lab", **fields: Any) -> TaskSeen:
    return TaskSeen(replace(make_task(name, 1, asked_pool=pool), **fields))


ADMITTED = Pool("lab", namespaces=("default",))
CLOSED = Pool("lab")
IN_DEFAULT = "so its label does not count, and it is in pool default/default"


def test_it_is_said_once_when_all_that_came_with_it_is_known() -> None:
    cluster = Cluster(CLOSED)
    assert cluster.at(1.0, asking("a")) == []
    assert cluster.engine.next_step_at() is not None
    assert cluster.engine.next_step_at() <= 1.0 + SAID_AFTER_SECONDS  # type: ignore[operator]
    (said,) = cluster.at(1.0 + SAID_AFTER_SECONDS)
    assert said == ("a", f"no Pool lab admits pods of namespace default, {IN_DEFAULT}")
    assert cluster.at(9.0, asking("a", labels=(("x", "y"),))) == []
    assert cluster.at(99.0) == []


@pytest.mark.parametrize(
    ("pools", "reason"),
    [
        ((Pool("other"),), "no Pool lab admits pods of namespace default"),
        ((ADMITTED, Pool("child", parent="lab")), "Pool lab has pools below it, and pods are in those alone"),
        (
            (Pool("lab", parent="gone", namespaces=("default",)),),
            "Pool lab is not valid, as its condition Ready says",
        ),
    ],
)
def test_the_reason_is_given(pools: tuple[Pool, ...], reason: str) -> None:
    cluster = Cluster(*pools)
    cluster.at(1.0, asking("a"))
    ((_, message),) = cluster.at(3.0)
    assert message == f"{reason}, {IN_DEFAULT}"


def test_nothing_is_said_of_pods_that_are_where_they_ask_to_be_or_above_the_tree() -> None:
    cluster = Cluster(ADMITTED)
    cluster.at(1.0, asking("a"), asking("b", ""), asking("c", "x", priority=SYSTEM_PRIORITY))
    assert cluster.at(9.0) == []


def test_a_pod_that_was_seen_before_its_pool_or_the_labels_of_its_namespace_is_not_wronged() -> None:
    cluster = Cluster(Pool("other"))
    cluster.at(1.0, asking("a"))
    cluster.at(1.5, PoolSeen(CLOSED), NamespaceSeen("default", (), "lab"))
    assert cluster.at(9.0) == []


def test_one_that_is_bound_at_once_hears_it_too_and_one_that_is_gone_does_not() -> None:
    cluster = Cluster(CLOSED)
    cluster.at(1.0, asking("a"), asking("b"))
    cluster.at(1.1, TaskGone("uid-b"))
    assert [name for name, _ in cluster.at(9.0)] == ["a"]


def test_pods_that_wait_are_named_when_their_pool_is_gone() -> None:
    cluster = Cluster(ADMITTED, Pool("other"))
    cluster.at(1.0, asking("a"), asking("b"))
    assert cluster.at(5.0, asking("a", node="n")) == []
    cluster.at(6.0, PoolGone("lab"))
    assert [name for name, _ in cluster.at(9.0)] == ["b"]


def test_writes_are_bounded_and_no_namespace_stops_another() -> None:
    cluster = Cluster(CLOSED)
    cluster.at(1.0, *(asking(f"a{number}") for number in range(500)), asking("b", namespace="calm"))
    said = cluster.at(9.0)
    assert len(said) == NAMESPACE_MOST + 1
    assert said[-1][0] == "b"
    many = [asking(f"{at}-{number}", namespace=f"n{at}") for at in range(50) for number in range(10)]
    assert cluster.at(10.0, *many) == []
    counts = [len(cluster.at(12.0 + at)) for at in range(120)]
    assert all(sum(counts[at : at + 61]) <= MINUTE_MOST for at in range(60))
    assert sum(counts) > MINUTE_MOST


def test_explain_says_it_of_pods_that_wait() -> None:
    cluster = Cluster(CLOSED)
    cluster.at(1.0, asking("a"), asking("b"))
    waiting = explain_pod(cluster.engine, "default", "b", 2.0)
    assert waiting.pool_refused == f"no Pool lab admits pods of namespace default, {IN_DEFAULT}"
