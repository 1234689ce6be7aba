"""A story: a seeded random sequence of every kind of event that can happen in a cluster.

The events depend only on the seed and on the engine's commands so far, so equal engines get equal stories.
Every bind is checked against the rules when the engine issues it. An Order that shares by Pools gets some.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from random import Random

import msgspec
from msgspec.structs import replace

from builders import make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind, Evict, Nominate, Solve
from eclectus.model.events import (
    BindConfirmed,
    BindRefused,
    Event,
    EvictRefused,
    NodeGone,
    NodeSeen,
    NominateRefused,
    PoolSeen,
    Resumed,
    Solved,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import (
    NO_GRANT,
    HostPort,
    Input,
    Node,
    Preference,
    Requirement,
    Taint,
    Task,
    Term,
    Toleration,
)
from eclectus.model.pool import Pool, PoolAmounts, PoolPreemption
from flow_answers import answer
from judge import devices_left, refusal

FAST = Term((Requirement("speed", "In", ("fast",)),))
POD_FIELDS = (
    {"cpu": 1},
    {"cpu": 1, "workload": "sort"},
    {"cpu": 2, "memory": 4},
    {"cpu": 1, "node_selector": (("zone", "z1"),)},
    {"cpu": 1, "preferences": (Preference(10, FAST),)},
    {"cpu": 1, "tolerations": (Toleration("dedicated", "Exists"),)},
    {"cpu": 1, "gpus": 1},
    {"cpu": 1, "device_milli": 400},
    {"cpu": 1, "device_milli": 2000},
    {"cpu": 1, "host_ports": (HostPort(80),)},
    {"cpu": 1, "long_running": True},
    {"cpu": 99},
    {"cpu": 1, "unsupported": ("volumes",)},
    {"cpu": 0},
)
LEAVES = (
    Pool("capped", parent="all", namespaces=("default",), max_share=PoolAmounts((("cpu", 6000),))),
    Pool(
        "promised",
        parent="all",
        namespaces=("default",),
        min_share=PoolAmounts((("cpu", 20_000),)),
        preemption=PoolPreemption(min_share_seconds=1.0),
    ),
)


class Story:
    """Nodes and pods that are created, changed and deleted, and the engine that gets the events.

    `leaves`: the pools below one, of which the pods ask for one after the other where an Order needs Pools.
    """

    def __init__(self, engine: Engine, seed: int, leaves: Sequence[Pool] = LEAVES) -> None:
        needs = {need for each in engine._state.profiles.values() for need in each.order.traits.needs}
        self._leaves = leaves if "pools" in needs else ()
        self._most = {each.name: dict(each.max_share.amounts) for each in self._leaves}
        self.engine, self.now = engine, 0.0
        self.tasks: dict[str, Task] = {}
        self.nodes: dict[str, Node] = {}
        self.commands: list[msgspec.Struct] = []
        self._random, self._serial = Random(f"story {seed}"), 0
        self._data = Random(f"data {seed}")  # so that other stories stay as they are
        self._binds_in_flight: list[Bind] = []
        self._asked: list[Evict | Nominate | Solve] = []  # not answered yet
        tree = [Pool("all"), *self._leaves] if self._leaves else []
        self._step([Resumed(), *map(PoolSeen, tree)])

    def run(self, rounds: int) -> Story:
        """This many steps, each with a few random changes."""
        changes = (
            self._create, self._create, self._create, self._end, self._end, self._delete, self._update,
            self._add_node, self._update_node, self._drop_node, self._foreign, self._burst,
        )  # fmt: skip
        for _ in range(4):
            self._step(self._add_node())
        for _ in range(rounds):
            events = self._answers()
            for _ in range(self._random.randrange(1, 5)):
                events += self._random.choice(changes)()
            self._step(events, self._random.random())
        return self

    def drain(self) -> Story:
        """Add nodes that suit every pod, and end running pods, until no pod that could run still waits."""
        self.nodes |= {f"good{at}": _suitable_node(f"good{at}") for at in range(2)}
        self._step([NodeSeen(node) for node in self.nodes.values()])
        for _ in range(400):
            self._step(self._answers() + self._end() + self._end(), 1.0)
        return self

    def rest(self, seconds: float) -> Story:
        """Let time pass in which nothing happens but what the engine asks for."""
        end = self.now + seconds
        while self.now < end or self._binds_in_flight or self._asked:
            at = self.engine.next_step_at()
            is_asked = bool(self._binds_in_flight or self._asked)
            due = self.now if is_asked else end if at is None else at
            self._step(self._answers(), min(max(due - self.now, 0.1), 20.0))
        return self

    def waiting(self) -> list[Task]:
        """Ours and not bound."""
        return [task for task in self.tasks.values() if not task.node and task.profile == "eclectus"]

    def is_limited(self, task: Task) -> bool:
        """Whether the pool of a pod that waits would hold more than it may with it."""
        most = self._most.get(task.asked_pool)
        if not most:
            return False
        binding, held = {bind.uid for bind in self._binds_in_flight}, Counter(dict(task.spec.requests))
        for each in self.tasks.values():
            if each.asked_pool == task.asked_pool and (each.node or each.uid in binding):
                held.update(dict(each.spec.requests))
        return any(held[name] > amount for name, amount in most.items())

    # -- random changes --------------------------------------------------------------------------

    def _create(self) -> list[Event]:
        self._serial += 1
        fields = self._random.choice(POD_FIELDS)
        priority = self._random.choice((0, 0, 5))
        pool = self._leaves[self._serial % len(self._leaves)].name if self._leaves else ""
        task = make_task(
            f"t{self._serial}",
            created=self.now,
            priority=priority,
            inputs=self._inputs(),
            asked_pool=pool,
            **fields,
        )
        self.tasks[task.uid] = task
        return [TaskSeen(task)]

    def _inputs(self) -> tuple[Input, ...]:
        """Data on some nodes, some of which there are not; of every third pod none."""
        random, known = self._data, [*sorted(self.nodes), "no-node"]
        return tuple(
            Input(f"d{at}", random.randrange(1, 9), tuple(random.sample(known, min(3, len(known)))))
            for at in range(random.choice((0, 1, 2)))
        )

    def _burst(self) -> list[Event]:
        """So many pods that some wait for room, and some of those evict others."""
        return [event for _ in range(4) for event in self._create()]

    def _foreign(self) -> list[Event]:
        name = self._pick(self.nodes)
        if name is None:
            return []
        self._serial += 1
        task = make_task(f"f{self._serial}", profile="other", node=name, long_running=True)
        if refusal(task, self.nodes[name], self._on(name)):
            return []  # another scheduler does not overcommit nodes either
        self.tasks[task.uid] = task
        return [TaskSeen(task)]

    def _end(self) -> list[Event]:
        uid = self._pick(
            {uid: task for uid, task in self.tasks.items() if task.node and not task.spec.long_running}
        )
        if uid is None:
            return []
        task = self.tasks.pop(uid)
        ran = self._random.uniform(1, 20)
        return [TaskSeen(replace(task, phase="Succeeded", started=self.now - ran, finished=self.now))]

    def _delete(self) -> list[Event]:
        uid = self._pick(self.tasks)
        return [] if uid is None else [TaskGone(self.tasks.pop(uid).uid)]

    def _update(self) -> list[Event]:
        uid = self._pick({uid: task for uid, task in self.tasks.items() if not task.node})
        if uid is None:
            return []
        old = self.tasks[uid]
        gates = () if old.gates else self._random.choice(((), ("gate",)))
        self.tasks[uid] = replace(old, priority=self._random.randrange(10), gates=gates)
        return [TaskSeen(self.tasks[uid]), TaskSeen(self.tasks[uid])]

    def _add_node(self) -> list[Event]:
        self._serial += 1
        node = self._node(f"n{self._serial}")
        self.nodes[node.name] = node
        return [NodeSeen(node)]

    def _update_node(self) -> list[Event]:
        name = self._pick(self.nodes)
        if name is None:
            return []
        self.nodes[name] = self._node(name)
        return [NodeSeen(self.nodes[name])]

    def _drop_node(self) -> list[Event]:
        name = self._pick(self.nodes) if len(self.nodes) > 3 else None
        if name is None:
            return []
        del self.nodes[name]
        return [NodeGone(name)]

    def _node(self, name: str) -> Node:
        random = self._random
        taint = Taint("dedicated", effect=random.choice(("NoSchedule", "PreferNoSchedule")))
        return make_node(
            name,
            cpu=random.choice((2, 4, 8)),
            pods=random.choice((3, 110)),
            gpus=random.choice((0, 2)),
            devices=random.choice((0, 1, 3)),
            labels={"zone": random.choice(("z1", "z2")), "speed": random.choice(("fast", "slow"))},
            taints=random.choice(((), (), (taint,))),
            unschedulable=random.random() < 0.1,
        )

    def _pick(self, named: dict[str, object] | dict[str, Task] | dict[str, Node]) -> str | None:
        return self._random.choice(sorted(named)) if named else None

    # -- steps -----------------------------------------------------------------------------------

    def _on(self, node: str) -> list[Task]:
        binding = {bind.uid for bind in self._binds_in_flight if bind.node == node}
        return [task for uid, task in self.tasks.items() if task.node == node or uid in binding]

    def _step(self, events: list[Event], after: float = 0.0) -> None:
        self.now += after
        for command in self.engine.step(events, self.now):
            self.commands.append(command)
            if isinstance(command, Bind):
                self._check_bind(command)
            elif isinstance(command, Evict):
                self._check_evict(command)
            elif isinstance(command, Nominate | Solve):
                self._asked.append(command)

    def _check_bind(self, bind: Bind) -> None:
        task = self.tasks[bind.uid]
        assert not task.node, f"{task} is bound twice"
        problem = refusal(task, self.nodes.get(bind.node), self._on(bind.node))
        assert not problem, f"{task} is bound to {bind.node}: {problem}"
        assert not self.is_limited(task), f"{task} is bound beyond the limit of {task.asked_pool}"
        self._binds_in_flight.append(bind)
        task = self.tasks[bind.uid] = replace(task, grant=bind.grant)
        left = devices_left(self.nodes[bind.node], self._on(bind.node))
        assert all(left[device] >= 0 for device in task.grant.devices), f"{task} overcommits a device"

    def _check_evict(self, evict: Evict) -> None:
        victim, preemptor = self.tasks[evict.uid], self.tasks[evict.preemptor]
        assert victim.node == evict.node, f"{victim} is evicted from a node that it is not on"
        is_of_its_pool = victim.asked_pool == preemptor.asked_pool
        is_outranked = is_of_its_pool and victim.priority < preemptor.priority
        assert is_outranked if not evict.pool else not is_of_its_pool, f"{victim} is evicted for {preemptor}"
        assert evict.uid not in {each.uid for each in self._asked if isinstance(each, Evict)}
        self._asked.append(evict)

    def _answers(self) -> list[Event]:
        binds, self._binds_in_flight = self._binds_in_flight, []
        asked, self._asked = self._asked, []
        answers = [event for bind in binds for event in self._answer(bind)]
        return answers + [event for each in asked for event in self._carry_out(each)]

    def _carry_out(self, asked: Evict | Nominate | Solve) -> list[Event]:
        """An eviction or a nomination, which is refused now and then; a problem that is solved, or is not."""
        if isinstance(asked, Solve):
            return self._solve(asked)
        task = self.tasks.get(asked.uid)
        is_refused = task is None or self._random.random() < 0.1
        if isinstance(asked, Nominate):
            if task is None or is_refused:
                return [NominateRefused(asked.uid, asked.node, "conflict")]
            self.tasks[task.uid] = replace(task, nominated=asked.node)
            return [TaskSeen(self.tasks[task.uid])]
        if is_refused:
            return [EvictRefused(asked.uid, "conflict")]
        return [TaskGone(self.tasks.pop(asked.uid).uid)]

    def _solve(self, asked: Solve) -> list[Event]:
        """The solver fails now and then, or says nothing."""
        found, luck = answer(self.engine, asked), self._random.random()
        if found is None or luck < 0.1:
            return []
        return [Solved(asked.serial, "failed") if luck < 0.2 else found]

    def _answer(self, bind: Bind) -> list[Event]:
        task = self.tasks.get(bind.uid)
        if task is None or task.gates or bind.node not in self.nodes or self._random.random() < 0.1:
            if task is not None:
                self.tasks[bind.uid] = replace(task, grant=NO_GRANT)
            return [BindRefused(bind.uid, bind.node, "conflict")]
        self.tasks[bind.uid] = replace(task, node=bind.node)
        events: list[Event] = [BindConfirmed(bind.uid, bind.node), TaskSeen(self.tasks[bind.uid])]
        self._random.shuffle(events)
        return events


def _suitable_node(name: str) -> Node:
    labels = {"zone": "z1", "speed": "fast"}
    return make_node(name, cpu=8, gpus=8, devices=2, labels=labels)


def digest(engine: Engine, seed: int = 1, rounds: int = 40) -> str:
    """The SHA-256 of all commands of a story."""
    return sha256(msgspec.json.encode(Story(engine, seed).run(rounds).commands)).hexdigest()


if __name__ == "__main__":  # run as a process with its own hash seed: prints the digest of every way
    from policy_choices import every_way

    for way in every_way():
        sys.stdout.write(f"{way} {digest(way.engine(), rounds=15)}\n")
