"""Runs the plan of a stream experiment: the same stream on the same nodes, one scheduler at a time."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import uvloop

from eclectus_e2e import usage
from eclectus_e2e.demo import schedulers
from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.experiment import EndedEarlyError
from eclectus_e2e.demo.schedulers import SCHEDULERS
from eclectus_e2e.demo.screen import RunId, Screen, Snapshot, take_snapshot
from eclectus_e2e.demo.stream.plan import LoadLevel, Perturbation, StreamPlan
from eclectus_e2e.demo.stream.report import Run, summarise
from eclectus_e2e.demo.workload.arrivals import Arrival
from eclectus_e2e.demo.workload.load import SentPods, delete_succeeded, send, start_over
from eclectus_e2e.demo.workload.pods import NAMESPACE

BEGIN_SECONDS = 1.0  # from readiness to the first arrival, so that the watch for ended pods is open
DRAIN_SECONDS = 120.0  # after the last arrival; a pod that has not ended then counts as lost
SNAPSHOT_EVERY_SECONDS = 1.0


def run_all(environment: Environment, plan: StreamPlan, screen: Screen) -> list[Run]:
    """Every run of every pair, in order. Raises EndedEarlyError with those of the pairs that were over."""
    runs: list[Run] = []
    left_seconds = plan.run_seconds
    try:
        for level, pair, names in plan.in_order():
            of_pair = []
            for name in names:
                stream = _Stream(environment, plan, level, pair, name, plan.arrivals(level, pair), screen)
                left = f"about {max(1, round(left_seconds / 60))} min left"
                pods = f"{len(stream.arrivals)} pods, {level.load * plan.capacity:.1f} a second"
                screen.say(f"{stream.run}: {pods}; {left}")
                of_pair.append(_run(stream))
                left_seconds -= level.run_seconds
                screen.say(f"{stream.run}: {_outcome(of_pair[-1])}")
            runs += of_pair
    except (Exception, KeyboardInterrupt) as error:
        if runs:
            raise EndedEarlyError(runs) from error
        raise
    return runs


def _outcome(run: Run) -> str:
    """What a run that is over says at once."""
    mean = summarise([pod.response_seconds for pod in run.timed()]).mean
    return f"mean response time {mean:.2f} s; other processes used {run.strangers_cores:.2f} cores"


@dataclass(frozen=True)
class _Stream:
    """One stream to one scheduler."""

    environment: Environment
    plan: StreamPlan
    level: LoadLevel
    pair: int
    scheduler: str
    arrivals: Sequence[Arrival]
    screen: Screen

    @property
    def run(self) -> RunId:
        """Its name on the screen."""
        pairs = self.plan.pairs
        which = f"pair {self.pair + 1} of {pairs}" if pairs > 1 else ""
        return RunId(self.scheduler, self.level.load, which)


def _run(stream: _Stream) -> Run:
    environment, level, name = stream.environment, stream.level, stream.scheduler
    environment.kubelet.reset()
    # 1. Start the scheduler and send the stream.
    with schedulers.running(environment, name):
        pids = environment.pids()
        before = usage.read(pids)
        sent, snapshots = uvloop.run(_send_all(stream))
        after = usage.read(pids)
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
        pair=stream.pair,
        warm_seconds=level.warm_seconds,
        arrivals=stream.arrivals,
        sent=sent.at,
        late_seconds=sent.late_seconds,
        entries=entries,
        counters=counters,
        rates=rates,
        strangers_cores=usage.cores_of_others(before, after),
        snapshots=snapshots,
    )


async def _send_all(stream: _Stream) -> tuple[SentPods, list[Snapshot]]:
    """Send every pod and wait for the last one to end; change speeds meanwhile if that is planned."""
    arrivals = stream.arrivals
    sent = SentPods(len(arrivals), time.time() + BEGIN_SECONDS)
    scheduler = SCHEDULERS[stream.scheduler].scheduler_name
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
