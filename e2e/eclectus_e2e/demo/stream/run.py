"""Runs the plan of a stream experiment: the same stream on the same nodes, one scheduler at a time."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import uvloop

from eclectus_e2e.demo import schedulers
from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.schedulers import SCHEDULERS
from eclectus_e2e.demo.screen import RunId, Screen, Snapshot, take_snapshot
from eclectus_e2e.demo.stream.plan import LoadLevel, Perturbation, StreamPlan
from eclectus_e2e.demo.stream.report import Run
from eclectus_e2e.demo.workload.arrivals import Arrival
from eclectus_e2e.demo.workload.load import SentPods, delete_succeeded, send, start_over
from eclectus_e2e.demo.workload.pods import NAMESPACE

BEGIN_SECONDS = 1.0  # from readiness to the first arrival, so that the watch for ended pods is open
DRAIN_SECONDS = 120.0  # after the last arrival; a pod that has not ended then counts as lost
SNAPSHOT_EVERY_SECONDS = 1.0


def run_all(environment: Environment, plan: StreamPlan, screen: Screen) -> list[Run]:
    """Every run of every load, in order."""
    runs = []
    left_seconds = plan.run_seconds
    for level in plan.levels:
        per_second = level.load * plan.capacity
        arrivals = plan.arrivals(level)
        for name in level.schedulers:
            stream = _Stream(environment, plan, RunId(name, level.load), arrivals, screen)
            left = f"about {max(1, round(left_seconds / 60))} min left"
            screen.say(f"{stream.run}: {len(arrivals)} pods, {per_second:.1f} a second; {left}")
            runs.append(_run(stream, level))
            left_seconds -= level.run_seconds
    return runs


@dataclass(frozen=True)
class _Stream:
    """One stream to one scheduler."""

    environment: Environment
    plan: StreamPlan
    run: RunId
    arrivals: Sequence[Arrival]
    screen: Screen


def _run(stream: _Stream, level: LoadLevel) -> Run:
    environment, name = stream.environment, stream.run.scheduler
    environment.kubelet.reset()
    # 1. Start the scheduler and send the stream.
    with schedulers.running(environment, name):
        sent, snapshots = uvloop.run(_send_all(stream))
        rates = schedulers.learned_rates(environment.address)
    # 2. Read what the nodes recorded, before pods that have not ended are deleted.
    entries = [entry for entry in environment.kubelet.pod_times() if entry.namespace == NAMESPACE]
    counters = environment.kubelet.counters()
    # 3. Empty the nodes, delete what was learned and restore the speeds, for the next run.
    uvloop.run(_reset(environment))
    if stream.plan.perturbation:
        _set_speeds(environment, {node.name: node.speed for node in stream.plan.nodes})
    return Run(
        scheduler=name,
        load=level.load,
        warm_seconds=level.warm_seconds,
        arrivals=stream.arrivals,
        sent=sent.at,
        late_seconds=sent.late_seconds,
        entries=entries,
        counters=counters,
        rates=rates,
        snapshots=snapshots,
    )


async def _send_all(stream: _Stream) -> tuple[SentPods, list[Snapshot]]:
    """Send every pod and wait for the last one to end; change speeds meanwhile if that is planned."""
    arrivals = stream.arrivals
    sent = SentPods(len(arrivals), time.time() + BEGIN_SECONDS)
    scheduler = SCHEDULERS[stream.run.scheduler].scheduler_name
    async with stream.environment.api() as api, asyncio.TaskGroup() as group:
        background = [group.create_task(delete_succeeded(api))]
        if stream.plan.perturbation:
            background.append(group.create_task(_perturb(stream, stream.plan.perturbation, sent)))
        creating = group.create_task(send(api, arrivals, scheduler, sent))
        snapshots = await _show_until_over(stream, sent)
        await creating
        for task in background:
            task.cancel()
    return sent, snapshots


async def _show_until_over(stream: _Stream, sent: SentPods) -> list[Snapshot]:
    """Show and return snapshots until every pod has ended, or DRAIN_SECONDS after the last arrival."""
    environment, found = stream.environment, list[Snapshot]()
    deadline = sent.began + stream.arrivals[-1].at_seconds + DRAIN_SECONDS
    while time.time() < deadline:
        # In a thread, because drawing takes tens of milliseconds and the load generator must not be late.
        rates = await asyncio.to_thread(schedulers.learned_rates, environment.address)
        found.append(await asyncio.to_thread(take_snapshot, environment, stream.run, sent, rates))
        await asyncio.to_thread(stream.screen.show, found[-1])
        if found[-1].is_over:
            return found
        await asyncio.sleep(SNAPSHOT_EVERY_SECONDS)
    logging.warning(
        "%s: %d pods had not ended %.0f s after the last arrival",
        stream.run,
        found[-1].planned - found[-1].ended,
        DRAIN_SECONDS,
    )
    return found


async def _perturb(stream: _Stream, perturbation: Perturbation, sent: SentPods) -> None:
    """Change the speeds when it is time."""
    await asyncio.sleep(sent.began + perturbation.at_seconds - time.time())
    await asyncio.to_thread(_set_speeds, stream.environment, perturbation.speeds)
    stream.screen.say(f"{stream.run}: {perturbation.at_seconds:.0f} s: {perturbation.text}")


def _set_speeds(environment: Environment, speeds: Mapping[str, float]) -> None:
    for speed in sorted(set(speeds.values())):
        environment.kubelet.set_speed(speed, nodes=[node for node, new in speeds.items() if new == speed])


async def _reset(environment: Environment) -> None:
    async with environment.api() as api:
        await start_over(api)
