"""What the API server accepts in a pod or a node is read and counted exactly; a pod that waits has a report.

Anybody who may create a pod writes its texts and amounts, also those of pods that other schedulers place. So
nothing that is drawn here may be skipped, raise in a policy, or open more columns than nodes ask for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accepted_fields import IN_ANY_RUN, Node, later, nodes, pods
from accepted_pods import Pod
from eclectus.cluster.resources import FIRST_COLUMNS, MOST_HELD
from eclectus.config.profiles import read_learner, read_profiles
from eclectus.engine.engine import Engine
from eclectus.engine.report_allowance import GRACE_SECONDS_MOST
from eclectus.live.watch.reflector import ObjectStore
from eclectus.live.watch.watched_kinds import WatchedPods, nodes_kind, pods_kind
from eclectus.model.commands import Bind, Fault, Report
from eclectus.model.errors import MalformedError
from eclectus.model.events import Event, Resumed

NODES = ("n0", "n1")
PODS = ("p0", "p1", "p2", "p3")
PROFILES = [
    {},
    {"order": {"policy": "srtf"}},
    {"order": {"policy": "sjf"}, "place": {"policy": "tetris"}},
    {"order": {"policy": "drf"}, "place": {"policy": "least-allocated"}, "learn": {"policy": "none"}},
]
LATER = GRACE_SECONDS_MOST + 5.0  # by now every pod that waits has a report: no bind is answered meanwhile


class Cluster:
    """A scheduler that watches an API server, as far as events and commands go; binds are never answered."""

    def __init__(self, profile: dict[str, object]) -> None:
        profile = {"schedulerName": "eclectus", "relieve": {"policy": "none"}, **profile}
        learn = read_learner(profile.pop("learn", None), "learn", {})
        self.engine = Engine(read_profiles([profile], "profiles"), learn, 0)
        self.unread: list[MalformedError] = []
        self._pods = ObjectStore(pods_kind(WatchedPods(lambda name: name == "eclectus")), self.unread.append)
        self._nodes = ObjectStore(nodes_kind(), self.unread.append)
        self._version, self.now = 0, 0.0
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.offered: set[str] = set()
        self.bound: dict[str, str] = {}  # pod -> node, of our binds
        self.reported: dict[str, str] = {}  # pod -> message
        self.faults: list[Fault] = []
        self.step([Resumed()])

    def show(self, changed: Iterable[Pod | Node], kind: str = "MODIFIED") -> None:
        """The objects are created or changed; then some seconds pass."""
        events = []
        for each in changed:
            self._version += 1
            store = self._nodes if isinstance(each, Node) else self._pods
            line = json.dumps({"type": kind, "object": each.body(self._version)}).encode()
            event = store.apply(line, self.now)
            assert event is not None, each
            events.append(event)
            if isinstance(each, Node):
                self.nodes[each.name] = each
                self.offered |= each.offers().keys()
            else:
                self.pods[each.name] = each
        self.step(events)
        end = self.now + LATER
        while (at := self.engine.next_step_at()) is not None and at <= end:
            self.now = max(self.now, at)
            self.step([])
        self.now = end

    def step(self, events: list[Event]) -> None:
        """One step at this time."""
        for command in self.engine.step(events, self.now):
            match command:
                case Bind():
                    self.bound[command.name] = command.node
                case Report():
                    self.reported[command.name] = command.message
                case Fault():
                    self.faults.append(command)

    def used(self, node: str) -> dict[str, float]:
        """What the pods on a node hold of what nodes offer, computed from the drawn amounts."""
        total: Counter[str] = Counter()
        for name, pod in self.pods.items():
            if node != (pod.node or self.bound.get(name)) or pod.has_ended:
                continue
            held = pod.holds() if pod.node else pod.requests()
            total["pods"] += 1
            total.update({each: min(amount, int(MOST_HELD)) for each, amount in held.items()})
        return {each: float(total[each]) for each in self._columns}

    @property
    def _columns(self) -> set[str]:
        return {*FIRST_COLUMNS, *self.offered}

    def check(self) -> None:
        """Everything was read, is counted exactly, and costs what nodes ask for."""
        cluster = self.engine._state.cluster
        assert self.unread == []
        assert self.faults == []
        assert set(cluster.columns) == self._columns
        assert len(cluster.labels) <= len({key for node in self.nodes.values() for key in node.labels})
        for name, node in self.nodes.items():
            row = cluster.rows[name]
            offers = {each: float(node.offers().get(each, 0)) for each in self._columns}
            assert {each: cluster.allocatable[row][at] for each, at in cluster.columns.items()} == offers
            assert {each: cluster.used[row][at] for each, at in cluster.columns.items()} == self.used(name)
            assert cluster.cordoned[row] == node.spec["unschedulable"]
        for name, pod in self.pods.items():
            assert not pod.waits or name in self.bound or self.reported.get(name), (
                f"{name} waits without a report"
            )


def run(data: st.DataObject, profile: dict[str, object]) -> None:
    """Pods come before and after their nodes, change, and go; nothing is left of them."""
    cluster = Cluster(profile)
    drawn = {name: data.draw(pods(name, NODES), label=name) for name in PODS}
    cluster.show([drawn["p0"]])
    cluster.show([data.draw(nodes(name), label=name) for name in NODES])
    cluster.show([drawn[name] for name in PODS[1:]])
    cluster.check()
    cluster.show([data.draw(later(pod), label=f"{name} later") for name, pod in drawn.items()])
    cluster.show([data.draw(nodes(NODES[0]), label="n0 later")])
    cluster.check()
    cluster.show(list(cluster.pods.values()), "DELETED")
    cluster.pods.clear()
    cluster.check()
    state = cluster.engine._state
    assert (len(state.pending), len(state.cluster.unoffered)) == (0, 0)


@pytest.mark.parametrize("profile", PROFILES, ids=str)
@settings(IN_ANY_RUN, max_examples=60, derandomize=True)
@given(data=st.data())
def test_anything_accepted_is_read_counted_and_reported(
    profile: dict[str, object], data: st.DataObject
) -> None:
    run(data, profile)


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES, ids=str)
@settings(IN_ANY_RUN, max_examples=1500)
@given(data=st.data())
def test_anything_accepted_in_many_more_runs(profile: dict[str, object], data: st.DataObject) -> None:
    run(data, profile)
