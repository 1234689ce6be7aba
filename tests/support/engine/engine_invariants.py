"""What must hold of an engine after every step, and once nothing happens any more.

Each function compares an engine with `Delivered` (model_server.py): what the events that it has received say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

import numpy as np

from demand_model import demand_anew
from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind, Command, Evict
from eclectus.model.objects import HostPort, Task
from judge import refusal
from model_server import Delivered, ModelServer


def every_waiting_pod_is_in_one_queue(engine: Engine, known: Delivered) -> None:
    """No waiting pod is in two queues or in none, and the queues hold no others."""
    state = engine._state
    queued = [task for pending in state.class_queues for task in pending]
    at_nodes = [task for reservation in state.node_queues._reservations for task in reservation.tasks]
    held = [task for gang in state.gangs._gangs.values() for task in gang.held.values()]
    containers = {
        "classQueue": {task.uid for task in queued if state.places.of(task.uid) != "lead"},
        "lead": {task.uid for task in queued if state.places.of(task.uid) == "lead"},
        "nodeQueue": {task.uid for task in at_nodes},
        "gang": {task.uid for task in held if state.places.of(task.uid) != "lead"},
        "heldBack": set(state.held_back._of),
        "backOff": set(state.backoff._due._valid),
    }
    found: dict[str, set[str]] = {}
    for uid, (place, _) in state.places._of.items():
        found.setdefault(place, set()).add(uid)
    for place, uids in containers.items():
        assert found.get(place, set()) == uids, place
    assert {place: len(uids) for place, uids in found.items()} == state.places.counts()
    waiting = {uid for place, uids in found.items() if place not in ("assumed", "deleting") for uid in uids}
    assert waiting == {task.uid for task in known.waiting()}
    assert engine.queue_counts().counters.missed_activations == 0


def pools_hold_what_their_pods_hold(engine: Engine, known: Delivered) -> None:
    """Every pool and prefix holds what its pods on nodes hold, and as many jobs run as these are of."""
    state = engine._state
    held, jobs = dict[str, Counter[str]](), dict[str, set[str]]()
    for task in state.placed.tasks():
        parts = task.pool.split("/") if task.pool else []
        for path in ("/".join(parts[: at + 1]) for at in range(len(parts))):
            held.setdefault(path, Counter()).update(_held(task))
            jobs.setdefault(path, set()).add(task.job or task.uid)
    assert bool(held) <= bool(state.pools.tree), "pods are in pools although there are none"
    assert state.pools._running == {path: len(each) for path, each in jobs.items()}
    for path, amounts in held.items():
        assert Counter(state.pools.usage.held(path)) == amounts, path
    if not state.pools.tree:
        return
    quotas_by_node_count_what_is_there(engine)
    on_nodes = {task.uid for task in state.placed.tasks()}
    waiting = [task for task in state.pending.values() if task.uid not in on_nodes]
    may_run = [task for task in waiting if not task.gates and not task.deleting]
    assert state.pools.usage.waiting("").get("pods", 0) == len([task for task in may_run if task.pool])


def pools_demand_what_may_start(engine: Engine) -> None:
    """What waits in vain is no demand: kept up to date it is what it is if all is counted anew."""
    state, pools = engine._state, engine._state.pools
    never = [each for each in state.class_queues if each.never_feasible and each.gang is None]
    of_gangs = {uid for uid in pools._unplaceable_pods if state.places.of(uid) in ("gang", "lead")}
    waiting_for_none = {task.uid for each in never for task in each if task.pool}
    without_room = {uid for uid in waiting_for_none if uid not in state.placed}
    assert pools._unplaceable_pods.keys() - of_gangs == without_room
    if pools.tree:
        held = [task for task in state.placed.tasks() if task.pool]
        waiting = [state.pending[uid] for uid in pools.usage._pending if uid not in state.placed]
        expected = demand_anew(pools, held, waiting, pools._unplaceable_pods)
        for path, amounts in expected.items():
            assert {name: each for name, each in pools.demand_of(path).items() if each} == amounts, path


def quotas_by_node_count_what_is_there(engine: Engine) -> None:
    """Every pool holds on the nodes of a kind what its pods there hold."""
    state = engine._state
    for pool in state.pools.tree:
        path = state.pools.tree.path_of(pool.name)
        for kind in () if path is None else state.pools.node_quotas.held_of(path):
            held = Counter[str]()
            for task in state.placed.tasks():
                row = state.cluster.rows.get(state.placed.node_of(task.uid))
                is_there = row is not None and state.cluster.labels.value(kind.key, row) == kind.value
                if is_there and (task.pool == path or task.pool.startswith(f"{path}/")):
                    held.update(_held(task))
            assert dict(kind.amounts) == {name: held[name] for name, _ in kind.amounts}, f"{path}, {kind}"


def binds_keep_the_limits(engine: Engine, commands: Sequence[Command]) -> None:
    """No pool in which a pod was just bound holds more than it may."""
    state = engine._state
    for bind in commands:
        task = state.placed.task(bind.uid) if isinstance(bind, Bind) else None
        for bound in () if task is None or not task.pool else state.pools.bounds_of(task.pool):
            held = state.pools.usage.held(bound.path)
            over = {name: held.get(name, 0) for name, most in bound.most.items() if held.get(name, 0) > most}
            assert not any(name in {"pods", *dict(task.spec.requests)} for name in over), f"{bound}: {over}"
            assert bound.jobs is None or state.pools.running_jobs(bound.path) <= bound.jobs, str(bound)
            assert not bound.suspended, str(bound)
        for path in () if task is None or not task.pool else _way(task.pool):
            pool = state.pools.tree.of_path(path)
            for kind in () if pool is None else pool.max_share.by_node:
                row = state.cluster.rows[state.placed.node_of(task.uid)]
                if state.cluster.labels.value(kind.key, row) == kind.value:
                    for name, most in kind.amounts:
                        if name in {"pods", *(each for each, amount in task.spec.requests if amount)}:
                            held_there = state.pools.node_quotas.held(path, kind.key, kind.value, name)
                            assert held_there <= most, f"{task} on {kind}: {path} holds {held_there} {name}"


def _way(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[: at + 1]) for at in range(len(parts))]


def gangs_are_victims_whole_or_keep_their_quorum(engine: Engine, commands: Sequence[Command]) -> None:
    """Of a gang from which pools have just taken pods, so many stay as start together, or none."""
    state = engine._state
    evictions = [each for each in commands if isinstance(each, Evict) and each.pool]
    assert not any(state.pools.tries_out(each.pool) for each in evictions), "it is a dry run"
    reclaimed = [each.uid for each in evictions]
    for gang in {id(gang): gang for uid in reclaimed if (gang := state.gangs.pods.get(uid))}.values():
        placed = [task for uid in gang.placed if (task := state.placed.task(uid)) is not None]
        left = [task for task in placed if not task.deleting and task.uid not in state.evictions.sent]
        enough = gang.min_count is not None and len(left) + len(gang.ended) >= gang.min_count
        assert not left or enough, f"of {gang.key} {len(left)} pods are left"


def room_is_held_for_gangs_as_a_whole(engine: Engine) -> None:
    """Of a gang that is not complete no pod is nominated, or so many as start together, without a turn."""
    state = engine._state
    for gang in state.gangs._gangs.values():
        held = [uid for uid in gang.held if state.placed.is_nominated(uid)]
        if engine.leads and not gang.is_complete and not state.gangs.changed:
            assert bool(held) == gang.has_room, str(gang.key)
            assert not held or len(held) >= gang.needed, f"{len(held)} of {gang.needed} of {gang.key}"
            assert not held or gang.lead is None, str(gang.key)


def gangs_take_room_back_as_a_whole(engine: Engine, commands: Sequence[Command]) -> None:
    """Pods were evicted for a gang that is not complete only where so many have room as start together."""
    state = engine._state
    for evict in commands:
        task = state.pending.get(evict.preemptor) if isinstance(evict, Evict) else None
        if task is not None and task.gang is not None and state.gangs.keeps(task):
            assert state.gangs.pods[task.uid].has_room, f"{evict.name} goes for a part of {task.gang}"


def the_arrays_match_the_delivered_events(engine: Engine, known: Delivered) -> None:
    """Every node's row holds its amounts, and those of the pods on it."""
    cluster = engine._state.cluster
    assert set(cluster.rows) == set(known.nodes)
    for name, node in known.nodes.items():
        row, placed = cluster.rows[name], known.on(name)
        _same(cluster, cluster.allocatable[row], [dict(node.allocatable)])
        _same(cluster, cluster.used[row], [_held(task) for task in placed])
        services = [task for task in placed if task.spec.long_running]
        _same(cluster, cluster.long_running[row], [_held(task) for task in services])
        scored = np.array([task.spec.score_requests for task in placed]).reshape(-1, 2).sum(axis=0)
        assert tuple(cluster.scored[row]) == tuple(scored)
        assert bool(cluster.cordoned[row]) == node.unschedulable
    for name, row in cluster.rows.items():
        ports = [port for task in known.on(name) for port in task.spec.host_ports]
        assert cluster.host_ports.count(HostPort(80), row) == len(ports)


def tentative_room_is_that_of_node_queues_and_deferrals(engine: Engine) -> None:
    """Tentative room has an owner, and every task in node queues is counted once."""
    state = engine._state
    tentative = [(task, wait.row) for task, wait in state.deferrals.waits.values()]
    for row, queue in state.node_queues.by_row.items():
        assert all(each.tasks and each.rows.count(row) == queue.count(each) for each in queue)
        tentative += [(each.head, row) for each in queue if each.is_tentative]
    queued = {
        task.uid: each.class_key
        for queue in state.node_queues.by_row.values()
        for each in queue
        for task in each.tasks
    }
    assert state.node_queues.tasks_by_class == Counter(queued.values())
    expected = np.zeros_like(state.cluster.tentative)
    for task, row in tentative:
        expected[row] += state.cluster.task_vector(task.spec.requests)
    assert np.array_equal(state.cluster.tentative, expected)


def the_counts_of_jobs_match_the_delivered_events(engine: Engine, known: Delivered) -> None:
    """Every DAG job that is known, and of each stage the pods that wait and those on nodes."""
    jobs = engine._state.accounts.jobs
    assert jobs is not None
    assert set(jobs) == set(known.jobs)
    waiting = {task.uid for task in known.waiting() if not task.gates}
    for uid, job in jobs.items():
        for stage in job.stages:
            own = [each for each in known.tasks.values() if (each.job, each.stage) == (uid, stage.stage.name)]
            holding = {task.uid for task in own if known.node_of(task) or known.nomination_of(task)}
            assert set(stage.on_nodes) == holding, f"{uid}, {stage.stage.name}"
            assert set(stage.waiting) == {task.uid for task in own} & waiting - holding, stage.stage.name


def no_pod_is_lost(
    server: ModelServer,
    may_evict: Callable[[Task], bool],
    limited: Collection[str] = (),
    pool_of: Callable[[str], str] = lambda uid: "",
) -> None:
    """Whatever is believed: after so much time a pod waits only where no feasible node has room.

    Or for its pool: `limited` has the uids of these, which say so. `pool_of`: of a pod, by its uid;
    priorities count inside a pool.
    """
    for task in server.delivered.waiting():
        if task.gates:
            continue
        assert task.reported, f"{task} waits and has no report"
        if task.uid in limited:
            continue
        known = server.delivered
        if task.gang is not None and not known.is_complete(task.gang):
            continue  # tests/engine/test_random_gangs.py says when it may wait
        refusals = [
            refusal(task, node, known.beside(task, name)) or _refused_by_pods(known, task, name)
            for name, node in server.nodes.items()
        ]
        assert all(refusals), f"{task} could run: {refusals}"
        if may_evict(task):
            no_eviction_would_help(server, task, pool_of)


def no_eviction_would_help(server: ModelServer, task: Task, pool_of: Callable[[str], str]) -> None:
    """No node would have room if all pods of lower priority, and of its pool, left it."""
    own = pool_of(task.uid)
    for name, node in server.nodes.items():
        known = server.delivered
        beside = known.beside(task, name)
        staying = [
            other
            for other in beside
            if other.priority >= task.priority or (own and pool_of(other.uid) != own)
        ]
        leaving = [other for other in beside if other not in staying]
        why = refusal(task, node, staying) or _refused_by_pods(known, task, name, leaving)
        assert why, f"{task} waits although it may evict pods from {name}"


def _refused_by_pods(known: Delivered, task: Task, node: str, leaving: Sequence[Task] = ()) -> str:
    """Whether nominated pods count or not: their anti-affinity counts in their whole topology domain."""
    refused = known.refused_by_pods(task, node, leaving)
    return refused or known.refused_by_pods(task, node, leaving, nominated=True)


def _held(task: Task) -> dict[str, int]:
    return {"pods": 1, **dict(task.holding)}


def _same(cluster: object, row: object, parts: list[dict[str, int]]) -> None:
    total = {name: sum(part.get(name, 0) for part in parts) for name in cluster.columns}  # type: ignore[attr-defined]
    counted = {name: row[column] for name, column in cluster.columns.items()}  # type: ignore[attr-defined,index]
    assert counted == total
