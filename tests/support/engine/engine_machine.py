"""Random events for an engine: Hypothesis chooses them, and engine_invariants.py says what must hold.

An engine is driven against a model of the API server (model_server.py), with late, repeated and batched
events, lost and refused binds, foreign pods, crashes and lost watches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

import engine_invariants as invariants
from builders import amounts, make_node, make_profile, make_task
from driven_engine import DrivenEngine
from eclectus.engine.engine import Engine
from eclectus.model.events import BudgetSeen, Paused, PoolGone, PoolSeen, Resumed, TaskSeen
from eclectus.model.objects import (
    Budget,
    Gang,
    HostPort,
    PodAffinityTerm,
    Requirement,
    SpreadConstraint,
    Taint,
    Task,
    Toleration,
)
from eclectus.model.pool import NO_AMOUNTS, NodeAmounts, Pool, PoolAmounts, PoolPreemption
from eclectus.policies.place.sparrow import Sparrow
from gangs import key
from judge import refusal
from model_server import FOREIGN

EMPTY: Mapping[str, object] = {}


def pods(most: int) -> PoolAmounts:
    """So many pods."""
    return PoolAmounts((("pods", most),))


def by_zone(first: int, second: int) -> PoolAmounts:
    """So many cores in one zone, and pods in the other."""
    kinds = (
        NodeAmounts("zone", "z1", (("cpu", 1000 * first),)),
        NodeAmounts("zone", "z2", (("pods", second),)),
    )
    return PoolAmounts(by_node=kinds)


POD_FIELDS = st.sampled_from(
    [
        {"cpu": 1},
        {"cpu": 1},
        {"cpu": 2, "workload": "sort"},
        {"cpu": 3},
        {"cpu": 1, "node_selector": (("zone", "z1"),)},
        {"cpu": 1, "tolerations": (Toleration("t", "Exists"),)},
        {"cpu": 1, "gpus": 1},
        {"cpu": 0, "host_ports": (HostPort(80),)},
        {"cpu": 1, "long_running": True},
        {"cpu": 0, "notional_requests": amounts(1)},
        {"cpu": 9},
        {"rule": "spread"},
        {"rule": "near"},
        {"rule": "apart"},
    ]
)
NODE_FIELDS = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from([1, 2, 4]),
        "pods": st.sampled_from([2, 10]),
        "gpus": st.sampled_from([0, 0, 1]),
        "labels": st.sampled_from([{"zone": "z1"}, {"zone": "z2"}, {}]),
        "taints": st.sampled_from([(), (), (Taint("t"),)]),
        "unschedulable": st.sampled_from([False, False, False, True]),
    }
)
POOL_FIELDS = st.fixed_dictionaries(
    {
        "max_share": st.sampled_from(
            [NO_AMOUNTS, pods(0), pods(1), pods(3), PoolAmounts((), 50.0), by_zone(1, 0), by_zone(2, 1)]
        ),
        "min_share": st.sampled_from([NO_AMOUNTS, pods(2), by_zone(1, 1)]),
        "running_jobs_most": st.sampled_from([None, None, 1, 2]),
        "suspended": st.sampled_from([False, False, False, True]),
        "weight": st.sampled_from([0.0, 1.0, 3.0]),
        "policy": st.sampled_from(["fifo", "fair", "sjf", "srtf"]),
        "preemption": st.sampled_from(
            [
                PoolPreemption(),
                PoolPreemption(0.0, 0.0),
                PoolPreemption(5.0, 5.0, min_runtime_seconds=3.0),
                PoolPreemption(0.0, 0.0, dry_run=True),
            ]
        ),
    }
)
PICK = st.integers(0, 1000)


def _with_rules(fields: dict[str, object], app: str) -> dict[str, object]:
    """Fields of a pod with a rule about the pods of its own app, by zone."""
    selector = (Requirement("app", "In", (app,)),)
    term = PodAffinityTerm("zone", selector, ("default",))
    match fields.get("rule"):
        case "spread":
            constraint = SpreadConstraint("zone", "default", selector, counts_itself=True)
            return {"spread": (constraint,), "topology_keys": ("zone",)}
        case "near":
            return {"affinity_terms": (term,), "matches_itself": True, "topology_keys": ("zone",)}
        case "apart":
            return {"own_anti_affinity": (term,), "anti_affinity_terms": (term,)}
    return fields


class EngineMachine(DrivenEngine, RuleBasedStateMachine):
    """One engine, one server, and the watches and answers between them."""

    profiles: Sequence[str] = ("eclectus",)

    @initialize()
    def initialise(self) -> None:
        self.set_up()
        self.serial, self.pools = 0, set[str]()
        self.server.put_node(make_node("first", cpu=2))
        self.start()

    # -- the cluster -----------------------------------------------------------------------------

    @rule(fields=POD_FIELDS, priority=st.sampled_from([0, 0, 1, 2]), gated=st.booleans())
    def create(self, fields: dict[str, object], priority: int, gated: bool) -> None:
        self.serial += 1
        gates = ("gate",) if gated and priority else ()
        name, app = f"t{self.serial}", f"a{self.serial % 3}"
        self.server.put_task(
            make_task(
                name,
                created=self.now,
                priority=priority,
                gates=gates,
                labels=(("app", app),),
                asked_pool=("", "team")[self.serial % 2],
                profile=self._profile(fields),
                **_with_rules(fields, app),
            )
        )

    @rule(fields=POD_FIELDS, count=st.integers(2, 6))
    def create_many(self, fields: dict[str, object], count: int) -> None:
        for _ in range(count):
            self.create(fields, 0, False)

    @rule(fields=POD_FIELDS, pick=PICK, count=st.integers(1, 3))
    def create_members(self, fields: dict[str, object], pick: int, count: int) -> None:
        """Pods of a PodGroup, which may exist or not."""
        for _ in range(count):
            self.serial += 1
            given = _with_rules(fields, "a0") | {"labels": (("app", "a0"),), "gang": key(f"g{pick % 3}")}
            given["preempts"] = False  # so that none is nominated
            self.server.put_task(make_task(f"t{self.serial}", created=self.now, **given))

    @rule(pick=PICK, minimum=st.integers(1, 4))
    def put_gang(self, pick: int, minimum: int) -> None:
        self.step([self.server.put_gang(Gang(key(f"g{pick % 3}"), minimum))])

    @rule(pick=PICK)
    @precondition(lambda self: self.server.gangs)
    def drop_gang(self, pick: int) -> None:
        self.step([self.server.drop_gang(list(self.server.gangs)[pick % len(self.server.gangs)])])

    @rule(name=st.sampled_from(["default", "team", "all"]), fields=POOL_FIELDS)
    def put_pool(self, name: str, fields: dict[str, object]) -> None:
        """The pool of the namespace, one that pods may ask for, or the parent of that."""
        self.pools.add(name)
        parent = "all" if name == "team" else ""
        self.step([PoolSeen(Pool(name, parent=parent, namespaces=("default",), **fields))])

    @rule(count=st.integers(1, 4), quorum=st.sampled_from([0, 0, 2, 6]), together=st.booleans())
    def starve_a_pool(self, count: int, quorum: int, together: bool) -> None:
        """One pool fills the cluster, perhaps with a gang, then pods of another with a minimum wait.

        `together`: as a gang.
        """
        self.put_pool("all", {})  # without it the other is not valid
        self.put_pool("team", {"preemption": PoolPreemption(0.0, 0.0)})
        if quorum:
            self.put_gang(3, quorum)
        self._create_in("team", 6, {"gang": key("g0"), "preempts": False} if quorum else {})
        self.deliver_all()
        while self.server.binds_in_flight:
            self.step([self.server.answer(0)])
        self.deliver_all()
        self.put_pool("default", {"min_share": pods(count), "preemption": PoolPreemption(0.0, 0.0)})
        claimants = key(f"claims{self.serial}")
        if together:
            self.step([self.server.put_gang(Gang(claimants, count + 1))])
        self._create_in("", count + together, {"gang": claimants} if together else {})
        self.deliver_all()
        for _ in range(2):  # pools are looked at ten times a second at most
            self.step([], 1.5)

    @rule(count=st.integers(1, 6), quorum=st.sampled_from([0, 0, 2]), above=st.booleans())
    def crowd_a_kind_of_node(self, count: int, quorum: int, above: bool) -> None:
        """A pool may hold little on the nodes of either zone, or the pool above it, and has more pods."""
        most = by_zone(1, 1)
        self.put_pool("all", {"max_share": most} if above else {})
        self.put_pool("team", {} if above else {"max_share": most, "min_share": by_zone(1, 0)})
        for zone in ("z1", "z2"):
            self.server.put_node(make_node(f"of-{zone}", cpu=4, labels={"zone": zone}))
        if quorum:
            self.put_gang(3, quorum)
        self._create_in("team", count, {"gang": key("g0"), "preempts": False} if quorum else {})
        self.deliver_all()

    def _create_in(self, pool: str, count: int, fields: Mapping[str, object] = EMPTY) -> None:
        for _ in range(count):
            self.serial += 1
            profile = self._profile(fields)
            self.server.put_task(
                make_task(f"t{self.serial}", created=self.now, asked_pool=pool, profile=profile, **fields)
            )

    @rule(pick=PICK)
    @precondition(lambda self: self.pools)
    def drop_pool(self, pick: int) -> None:
        name = self._pick(sorted(self.pools), pick)
        self.pools.discard(name)
        self.step([PoolGone(name)])

    @rule(pick=PICK)
    def delete(self, pick: int) -> None:
        if uid := self._pick(self.server.tasks, pick):
            self.server.drop_task(uid)

    @rule(pick=PICK, change=st.sampled_from(["priority", "gates", "deleting", "tolerations", "held"]))
    def update(self, pick: int, change: str) -> None:
        if uid := self._pick(self.server.tasks, pick):
            self.server.put_task(self._changed(self.server.tasks[uid], change))

    @rule(pick=PICK, seconds=st.sampled_from([1.0, 5.0, 40.0]))
    def end(self, pick: int, seconds: float) -> None:
        running = [uid for uid, task in self.server.tasks.items() if task.node and not task.spec.long_running]
        if uid := self._pick(running, pick):
            self.server.end_task(uid, self.now, seconds)

    @rule(fields=NODE_FIELDS)
    def add_node(self, fields: dict[str, object]) -> None:
        if len(self.server.nodes) < 6:
            self.serial += 1
            self.server.put_node(make_node(f"n{self.serial}", **fields))

    @rule(pick=PICK, fields=NODE_FIELDS)
    def update_node(self, pick: int, fields: dict[str, object]) -> None:
        if name := self._pick(self.server.nodes, pick):
            self.server.put_node(make_node(name, **fields))

    @rule(pick=PICK)
    def drop_node(self, pick: int) -> None:
        if name := self._pick(self.server.nodes, pick):
            self.server.drop_node(name)

    @rule(pick=PICK)
    def recreate_node(self, pick: int) -> None:
        if name := self._pick(self.server.nodes, pick):
            node = self.server.nodes[name]
            self.server.drop_node(name)
            self.server.put_node(node)

    @rule(pick=PICK, fields=POD_FIELDS, nominated=st.booleans())
    def create_foreign(self, pick: int, fields: dict[str, object], nominated: bool) -> None:
        """Another scheduler takes room that it sees free, though binds of ours may be in flight."""
        name = self._pick(self.server.nodes, pick)
        self.serial += 1
        task = make_task(f"f{self.serial}", profile=FOREIGN, **_with_rules(fields, f"a{self.serial % 3}"))
        if name and not refusal(task, self.server.nodes[name], self.server.on(name)):
            self.server.put_task(replace(task, nominated=name) if nominated else replace(task, node=name))

    # -- delivery ----------------------------------------------------------------------------------

    @rule(nodes=st.integers(0, 9), tasks=st.integers(0, 9), after=st.sampled_from([0.0, 0.1, 1.0, 30.0]))
    def deliver(self, nodes: int, tasks: int, after: float) -> None:
        self.step(self.server.deliver(nodes, tasks), after)

    @rule()
    def deliver_all(self) -> None:
        self.step(self.server.deliver(999, 999))

    @rule(pick=PICK, how=st.sampled_from(["answer", "answer", "answer", "refuse", "lose", "lose late"]))
    @precondition(lambda self: self.server.binds_in_flight)
    def answer_bind(self, pick: int, how: str) -> None:
        at = pick % len(self.server.binds_in_flight)
        if how.startswith("lose"):
            self.server.lose(at, before=how == "lose")
        else:
            self.step([self.server.answer(at) if how == "answer" else self.server.refuse(at)])

    @rule(refused=st.sampled_from([False, False, False, True]))
    @precondition(lambda self: self.server.reliefs_in_flight)
    def write_relief(self, refused: bool) -> None:
        self.step(self.server.write_relief(refused))

    @rule(pick=PICK)
    def end_termination(self, pick: int) -> None:
        terminating = [uid for uid, task in self.server.tasks.items() if task.deleting]
        if uid := self._pick(terminating, pick):
            self.server.drop_task(uid)

    @rule(pick=PICK, allowed=st.integers(0, 2))
    def put_budget(self, pick: int, allowed: int) -> None:
        selector = (Requirement("app", "In", (f"a{pick % 2}",)),)
        self.step([BudgetSeen(Budget("default", f"b{pick % 2}", selector, allowed))])

    @rule()
    def resolve_lost_binds(self) -> None:
        self.step(list(self.server.resolve_lost_binds()))

    @rule(pick=PICK)
    def repeat_event(self, pick: int) -> None:
        """The newest event of a pod again; for a bound pod also an older one."""
        known = self.server.delivered.tasks
        if uid := self._pick(known, pick):
            self.step([TaskSeen(known[uid])])
            if known[uid].node:
                self.engine_only([TaskSeen(replace(known[uid], node=""))])

    @rule(pick=PICK)
    def deliver_late_event(self, pick: int) -> None:
        """An event of a pod that the engine knows to be gone."""
        if self.gone:
            self.engine_only([TaskSeen(self.gone[pick % len(self.gone)])])

    @rule()
    def step_when_due(self) -> None:
        at = self.engine.next_step_at()
        if at is not None:
            self.step([], max(0.0, at - self.now))

    @rule()
    @precondition(lambda self: not self.paused)
    def wait_beyond_the_limit(self) -> None:
        self.run_until_idle()

    @rule()
    def pause_or_resume(self) -> None:
        self.paused = not self.paused
        self.step([Paused() if self.paused else Resumed()])

    @rule()
    def lose_the_watch(self) -> None:
        self.step([Paused()])
        self.step([*self.server.relist(), Resumed()])
        self.paused = False

    @rule(applied=st.booleans())
    def crash(self, applied: bool) -> None:
        """The process dies; its binds have reached the store or not. A new one starts from the store."""
        while self.server.binds_in_flight:
            self.server.lose(0, before=not applied)
        while applied and self.server.reliefs_in_flight:
            self.server.write_relief(refused=False)
        self.server.lost_binds, self.server.reliefs_in_flight = [], []
        self.server.forget_nominations_of_gangs()
        self.pools.clear()
        self.start()

    # -- invariants --------------------------------------------------------------------------------

    @invariant()
    def every_waiting_pod_is_in_one_queue(self) -> None:
        invariants.every_waiting_pod_is_in_one_queue(self.engine, self.server.delivered)

    @invariant()
    def the_arrays_match_the_delivered_events(self) -> None:
        invariants.the_arrays_match_the_delivered_events(self.engine, self.server.delivered)

    @invariant()
    def pools_hold_what_their_pods_hold(self) -> None:
        invariants.pools_hold_what_their_pods_hold(self.engine, self.server.delivered)

    @invariant()
    def pools_demand_what_may_start(self) -> None:
        invariants.pools_demand_what_may_start(self.engine)

    @invariant()
    def room_is_held_for_gangs_as_a_whole(self) -> None:
        invariants.room_is_held_for_gangs_as_a_whole(self.engine)

    @invariant()
    def tentative_room_is_that_of_node_queues_and_deferrals(self) -> None:
        invariants.tentative_room_is_that_of_node_queues_and_deferrals(self.engine)

    def teardown(self) -> None:
        if hasattr(self, "server"):
            while self.pools:  # no limit keeps a pod waiting at the end
                self.drop_pool(0)
            self.end_all()

    # -- helpers -------------------------------------------------------------------------------------

    def _pick(self, named: object, pick: int) -> str:
        names = list(named)  # type: ignore[call-overload]
        return names[pick % len(names)] if names else ""

    def _profile(self, fields: Mapping[str, object]) -> str:
        """Two pods for each in turn, one of each pool; those of a gang are for the same one."""
        return self.profiles[0 if "gang" in fields else self.serial // 2 % len(self.profiles)]

    def _changed(self, task: Task, change: str) -> Task:
        match change:
            case "priority":
                return replace(task, priority=task.priority + 1)
            case "gates" if not task.node and task.profile != FOREIGN:
                return replace(task, gates=() if task.gates else ("gate",))
            case "deleting":
                return replace(task, deleting=True)
            case "tolerations" if not task.node:
                return replace(task, spec=replace(task.spec, tolerations=(Toleration("t", "Exists"),)))
            case "held" if task.node:
                return replace(task, held=None if task.held else amounts(cpu=2))
        return task


class PoolMachine(EngineMachine):
    """It begins with a pool that another one has left no room: random events alone rarely come to that."""

    @initialize(count=st.integers(1, 4), quorum=st.sampled_from([0, 2, 5, 6]), together=st.booleans())
    def initialise(self, count: int, quorum: int, together: bool) -> None:
        super().initialise()
        for at in range(2):
            self.server.put_node(make_node(f"room{at}", cpu=2))
        self.deliver_all()
        self.starve_a_pool(count, quorum, together)


class TwoProfilesMachine(PoolMachine):
    """Half of the pods are for a profile that puts them into queues of nodes; the same limits hold both."""

    profiles = ("eclectus", "sparrow")

    @rule(count=st.integers(4, 12), most=st.integers(0, 3), ends=st.integers(1, 3))
    def lower_the_limit_of_pods_in_queues(self, count: int, most: int, ends: int) -> None:
        """More pods than there is room for, of which a pool may hold little when some of them end."""
        self.put_pool("all", {})
        self.put_pool("team", {})
        self._create_in("team", count)
        self.deliver_all()
        while self.server.binds_in_flight:
            self.step([self.server.answer(0)])
        self.put_pool("team", {"max_share": pods(most)})
        for at in range(ends):
            self.end(at, 5.0)
        self.deliver_all()

    def make(self) -> Engine:
        first = make_profile(self.policy(), order=self.order(), relieve=self.relieve())
        return Engine([first, make_profile(Sparrow(), "sparrow")], self.learn(), 7)
