"""A class that is kept up to date, of shared parts, equals one made afresh, whatever has happened since."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.task_class import Parts, TaskClass
from eclectus.model.objects import (
    HostPort,
    Node,
    PodAffinityTerm,
    Preference,
    Requirement,
    Spec,
    Taint,
    Task,
    Term,
    Toleration,
)

TERM = PodAffinityTerm("zone", (Requirement("app", "In", ("web",)),))
ZONE = Term((Requirement("zone", "In", ("z1",)),))
FAST = Term((Requirement("nic", "Gt", ("3",)),))
TOLERANT = (Toleration("s", "Exists"),)
SPECS = (
    Spec(requests=(("cpu", 2),)),
    # As the first, each with another part of its own:
    Spec(requests=(("cpu", 2),), preferences=(Preference(1, ZONE),)),
    Spec(requests=(("cpu", 2),), preferences=(Preference(2, ZONE), Preference(1, FAST))),
    Spec(requests=(("cpu", 2),), preferences=(Preference(2, ZONE),), tolerations=TOLERANT),
    Spec(requests=(("cpu", 2),), preferences=tuple(Preference(1 + at, ZONE) for at in range(40))),
    Spec(requests=(("cpu", 2),), node_selector=(("zone", "z1"),), long_running=True),
    Spec(requests=(("cpu", 2),), host_ports=(HostPort(80),)),
    Spec(requests=(("cpu", 1), ("memory", 3)), affinity=(ZONE, Term((Requirement("nic", "Gt", ("3",)),)))),
    Spec(requests=(("example.com/late", 1),), tolerations=(Toleration("t", "Exists"),)),
    Spec(host_ports=(HostPort(80),), preferences=(Preference(1, ZONE),)),
    Spec(matched_terms=(TERM,), long_running=True),
    Spec(requests=(("gpu-milli", 400),)),
    Spec(requests=(("cpu", 1), ("gpu-milli", 2000))),
)
PODS = (
    *(Task(str(i), "n", "p", spec=spec) for i, spec in enumerate(SPECS)),
    Task("term", "n", "p", anti_affinity_terms=(TERM,)),
    Task("grown", "n", "p", spec=SPECS[0], held=(("cpu", 5),)),
)
NAMES = [f"n{i}" for i in range(9)]
NODES = st.builds(
    Node,
    st.sampled_from(NAMES),
    st.sampled_from(
        [
            (("cpu", 4), ("memory", 8), ("pods", 4)),
            (("cpu", 9), ("pods", 2)),
            (("cpu", 4), ("example.com/late", 2), ("pods", 9)),
            (("cpu", 4), ("gpu-milli", 2000), ("pods", 9)),
        ]
    ),
    st.sampled_from([(), (("zone", "z1"),), (("nic", "5"), ("zone", "z2")), (("nic", "1"), ("zone", "z1"))]),
    st.sampled_from([(), (Taint("t"),), (Taint("s", effect="PreferNoSchedule"),)]),
    st.booleans(),
)


class KeepsUp(RuleBasedStateMachine):
    """Nodes and pods come and go; classes refresh now and then; change logs are truncated."""

    @initialize()
    def start(self) -> None:
        self.cluster = Cluster(rows=1)  # small, so that arrays grow under the classes
        self.parts = Parts(self.cluster)
        self.classes: dict[Spec, TaskClass] = {}
        self.held: list[tuple[str, Task]] = []
        self.serial = 0
        self.tentative: list[tuple[str, Any]] = []

    @rule(node=NODES)
    def a_node_comes_or_changes(self, node: Node) -> None:
        self.cluster.set_node(node)

    @precondition(lambda self: self.cluster.rows)
    @rule(data=st.data())
    def a_node_goes(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.cluster.rows)))
        row = self.cluster.rows[name]
        for where, task in self.held:
            if where == name:
                self.cluster.release(row, task)
        for where, amounts in self.tentative:
            if where == name:
                self.cluster.add_tentative(row, amounts, -1)
        self.held = [pair for pair in self.held if pair[0] != name]
        self.tentative = [pair for pair in self.tentative if pair[0] != name]
        self.cluster.drop_node(name)

    @precondition(lambda self: self.cluster.rows)
    @rule(data=st.data(), task=st.sampled_from(PODS))
    def a_pod_takes_room(self, data: st.DataObject, task: Task) -> None:
        name = data.draw(st.sampled_from(sorted(self.cluster.rows)))
        task = replace(task, uid=str(self.serial))
        self.serial += 1
        self.cluster.hold(self.cluster.rows[name], task)
        self.held.append((name, task))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def a_pod_ends(self, data: st.DataObject) -> None:
        name, task = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.cluster.release(self.cluster.rows[name], task)

    @precondition(lambda self: self.cluster.rows)
    @rule(data=st.data(), amounts=st.sampled_from([SPECS[0].requests, SPECS[1].requests]))
    def a_pod_waits_for_a_node(self, data: st.DataObject, amounts: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.cluster.rows)))
        self.cluster.add_tentative(self.cluster.rows[name], amounts)
        self.tentative.append((name, amounts))

    @precondition(lambda self: self.tentative)
    @rule()
    def a_pod_no_longer_waits(self) -> None:
        name, amounts = self.tentative.pop()
        self.cluster.add_tentative(self.cluster.rows[name], amounts, -1)

    @rule(keep=st.integers(0, 2))
    def change_logs_are_truncated(self, keep: int) -> None:
        self.cluster.shape.truncate(keep)
        self.cluster.usage.truncate(keep)

    @rule(spec=st.sampled_from(SPECS))
    def a_class_is_refreshed(self, spec: Spec) -> None:
        kept = self.classes.get(spec)
        if kept is None:
            kept = self.classes[spec] = TaskClass(self.cluster, spec, "w", self.parts)
        kept.refresh()
        self.compare(kept)

    @rule(spec=st.sampled_from(SPECS))
    def a_class_is_dropped(self, spec: Spec) -> None:
        self.classes.pop(spec, None)

    @invariant()
    def change_logs_stay_readable(self) -> None:
        assert self.cluster.shape.since(self.cluster.shape.head) is not None

    def compare(self, kept: TaskClass) -> None:
        fresh = TaskClass(self.cluster, kept.spec, "w")
        for name in (
            "feasible",
            "fits_now",
            "overflow",
            "empty_capacity",
            "service_slots",
            "preference_score",
            "waitable_rows",
            "fits_now_rows",
        ):
            np.testing.assert_array_equal(getattr(kept, name), getattr(fresh, name), err_msg=name)
        assert (kept.fits_now_count, kept.feasible_count) == (fresh.fits_now_count, fresh.feasible_count)
        assert kept.fits_now_count == kept.fits_now.sum()

    def teardown(self) -> None:
        for kept in self.classes.values():
            kept.refresh()
            self.compare(kept)


TestKeepsUp = KeepsUp.TestCase
TestKeepsUp.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
