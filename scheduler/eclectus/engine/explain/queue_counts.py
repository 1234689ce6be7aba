"""How many pods are in which queue, for metrics."""

from __future__ import annotations

from eclectus.engine.counters import QueueCounts
from eclectus.engine.state import State


def queue_counts(state: State) -> QueueCounts:
    """How many pods are in which queue; O(class queues)."""
    queues = state.class_queues
    unschedulable = sum(len(queue) for queue in queues if queue.unschedulable_since is not None)
    return QueueCounts(
        active=len(queues) - unschedulable,
        backoff=len(state.backoff),
        unschedulable=unschedulable,
        gated=len(state.gated),
        in_gangs=len(state.gangs),
        node_queues=len(state.node_queues),
        binding=len(state.placed.assumed),
        nominated=state.placed.nominated_count,
        nodes=len(state.cluster),
        classes=len(state.view.classes),
        dag_jobs=0 if state.accounts.jobs is None else len(state.accounts.jobs),
        counters=state.counters,
    )
