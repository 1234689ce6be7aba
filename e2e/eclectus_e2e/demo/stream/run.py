"""Runs the plan of a stream experiment: the same stream on the same nodes, one scheduler at a time."""

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence

import uvloop

from eclectus_e2e.demo import schedulers
from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.schedulers import SCHEDULERS
from eclectus_e2e.demo.screen import Screen
from eclectus_e2e.demo.snapshot import RunId, take_snapshot
from eclectus_e2e.demo.stream.plan import StreamPlan
from eclectus_e2e.demo.stream.report import Run
from eclectus_e2e.demo.workload.arrivals import Arrival, poisson_arrivals
from eclectus_e2e.demo.workload.load import SentPods, delete_all, delete_node_profiles, delete_succeeded, send
from eclectus_e2e.demo.workload.pods import NAMESPACE
from eclectus_e2e.testbed.kubelet.api import Api, read_access

BEGIN_SECONDS = 1.0  # from readiness to the first arrival, so that the watch for ended pods is open
DRAIN_SECONDS = 120.0  # after the last arrival; a pod that has not ended then counts as lost
SNAPSHOT_EVERY_SECONDS = 1.0


def run_all(environment: Environment, plan: StreamPlan, screen: Screen) -> Iterator[Run]:
    """Every run of every load, in order."""
    left_seconds = plan.run_seconds
    for level in plan.levels:
        per_second = level.load * plan.capacity
        arrivals = poisson_arrivals(plan.seed, per_second, level.stream_seconds, plan.mix)
        for name in level.schedulers:
            run = RunId(name, level.load)
            left = f"about {max(1, round(left_seconds / 60))} min left"
            screen.say(f"{run}: {len(arrivals)} pods, {per_second:.1f} a second; {left}")
            yield _run(environment, run, arrivals, level.warm_seconds, screen)
            left_seconds -= level.run_seconds


def _run(
    environment: Environment, run: RunId, arrivals: Sequence[Arrival], warm_seconds: float, screen: Screen
) -> Run:
    environment.kubelet.reset()
    # 1. Start the scheduler and send the stream.
    with schedulers.running(environment, run.scheduler):
        sent = uvloop.run(_send_all(environment, run, arrivals, screen))
        rates = schedulers.learned_rates(environment.address)
    # 2. Read what the nodes recorded, before pods that have not ended are deleted.
    entries = [entry for entry in environment.kubelet.pod_times() if entry.namespace == NAMESPACE]
    counters = environment.kubelet.counters()
    # 3. Empty the nodes and delete what was learned, for the next run.
    uvloop.run(_reset(environment))
    return Run(
        scheduler=run.scheduler,
        load=run.load,
        warm_seconds=warm_seconds,
        arrivals=arrivals,
        sent=sent.at,
        late_seconds=sent.late_seconds,
        entries=entries,
        counters=counters,
        rates=rates,
    )


async def _send_all(
    environment: Environment, run: RunId, arrivals: Sequence[Arrival], screen: Screen
) -> SentPods:
    sent = SentPods(len(arrivals), time.time() + BEGIN_SECONDS)
    scheduler = SCHEDULERS[run.scheduler].scheduler_name
    async with _api(environment) as api, asyncio.TaskGroup() as group:
        deleting = group.create_task(delete_succeeded(api))
        creating = group.create_task(send(api, arrivals, scheduler, sent))
        deadline = sent.began + arrivals[-1].at_seconds + DRAIN_SECONDS
        await _show_until_over(environment, run, sent, screen, deadline)
        await creating
        deleting.cancel()
    return sent


async def _show_until_over(
    environment: Environment, run: RunId, sent: SentPods, screen: Screen, deadline: float
) -> None:
    """Show snapshots until every pod has ended or the deadline (Unix seconds) has passed."""
    while time.time() < deadline:
        # In a thread, because drawing takes tens of milliseconds and the load generator must not be late.
        rates = await asyncio.to_thread(schedulers.learned_rates, environment.address)
        snapshot = await asyncio.to_thread(take_snapshot, environment, run, sent, rates)
        await asyncio.to_thread(screen.show, snapshot)
        if snapshot.is_over:
            return
        await asyncio.sleep(SNAPSHOT_EVERY_SECONDS)
    logging.warning(
        "%s: %d pods had not ended %.0f s after the last arrival",
        run,
        snapshot.planned - snapshot.ended,
        DRAIN_SECONDS,
    )


async def _reset(environment: Environment) -> None:
    async with _api(environment) as api:
        await delete_all(api)
        await delete_node_profiles(api)


def _api(environment: Environment) -> Api:
    return Api(read_access(environment.plane.kubeconfig))
