"""How many pods are in which queue, for metrics."""

from __future__ import annotations

from eclectus.engine.counters import QueueCounts
from eclectus.engine.state import State


def queue_counts(state: State) -> QueueCounts:
    """How many pods are in which queue; O(pods that wait)."""
    queues, places = state.class_queues, state.places.counts()
    unschedulable = sum(len(queue) for queue in queues if queue.unschedulable_since is not None)
    return QueueCounts(
        active=len(queues) - unschedulable,
        backoff=places["backOff"],
        unschedulable=unschedulable,
        gated=places["gated"],
        in_gangs=places["gang"],
        node_queues=places["nodeQueue"],
        binding=places["assumed"],
        nominated=state.placed.nominated_count,
        nodes=len(state.cluster),
        classes=len(state.view.classes),
        dag_jobs=0 if state.accounts.jobs is None else len(state.accounts.jobs),
        counters=state.counters,
    )
