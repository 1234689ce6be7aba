"""One contest after another: the same stream, the same nodes, one scheduler at a time."""

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import uvloop

from eclectus_e2e.demo import schedulers
from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.schedulers import SCHEDULERS
from eclectus_e2e.demo.screen import Screen
from eclectus_e2e.demo.snapshot import RunId, take_snapshot
from eclectus_e2e.demo.stream.report import Run
from eclectus_e2e.demo.workload.arrivals import DEFAULT_MIX, Arrival, Mix, capacity, poisson_arrivals
from eclectus_e2e.demo.workload.load import SentPods, delete_all, delete_node_profiles, delete_succeeded, send
from eclectus_e2e.demo.workload.pods import NAMESPACE
from eclectus_e2e.testbed.kubelet.api import Api, read_access

BEGIN_SECONDS = 1.0  # from readiness to the first arrival, so that the sweeper's watch stands
DRAIN_SECONDS = 120.0  # after the last arrival; who has not ended then is lost
LOOK_EVERY_SECONDS = 1.0
AROUND_SECONDS = 40.0  # of a contest, for a scheduler's start and the last pods' ends


@dataclass(frozen=True)
class LoadLevel:
    """One load: who runs, and for how long. Times are taken of pods that arrive after the warm-up."""

    load: float
    seconds: float
    warm_seconds: float
    schedulers: Sequence[str]


def run_all(
    ground: Environment, legs: Sequence[LoadLevel], seed: int, screen: Screen, mix: Mix = DEFAULT_MIX
) -> Iterator[Run]:
    """Every contest of every leg, in order."""
    left_seconds = sum(_contest_seconds(leg) * len(leg.schedulers) for leg in legs)
    for leg in legs:
        per_second = leg.load * capacity(ground.nodes, mix)
        arrivals = poisson_arrivals(seed, per_second, leg.warm_seconds + leg.seconds, mix)
        for name in leg.schedulers:
            contest = RunId(name, leg.load)
            ahead = f"; about {max(1, round(left_seconds / 60))} min left"
            screen.say(f"{contest}: {len(arrivals)} pods, {per_second:.1f} a second{ahead}")
            yield _run(ground, contest, arrivals, leg.warm_seconds, screen)
            left_seconds -= _contest_seconds(leg)


def _contest_seconds(leg: LoadLevel) -> float:
    return leg.warm_seconds + leg.seconds + AROUND_SECONDS


def _run(
    ground: Environment, contest: RunId, arrivals: Sequence[Arrival], warm_seconds: float, screen: Screen
) -> Run:
    ground.kubelet.reset()
    # 1. The scheduler is started, and the stream goes to it.
    with schedulers.running(ground, contest.scheduler):
        sent = uvloop.run(_play(ground, contest, arrivals, screen))
        cells = schedulers.learned_rates(ground.address)
    # 2. What do the nodes say? (Before anything is deleted that has not ended.)
    entries = [entry for entry in ground.kubelet.journal() if entry.namespace == NAMESPACE]
    counters = ground.kubelet.counters()
    # 3. The next contest begins on empty nodes, of which nothing is known.
    uvloop.run(_reset(ground))
    return Run(
        scheduler=contest.scheduler,
        load=contest.load,
        warm_seconds=warm_seconds,
        arrivals=arrivals,
        sent=sent.at,
        late_seconds=sent.late_seconds,
        entries=entries,
        counters=counters,
        rates=cells,
    )


async def _play(ground: Environment, contest: RunId, arrivals: Sequence[Arrival], screen: Screen) -> SentPods:
    sent = SentPods(len(arrivals), time.time() + BEGIN_SECONDS)
    scheduler = SCHEDULERS[contest.scheduler].scheduler_name
    async with _api(ground) as api, asyncio.TaskGroup() as group:
        sweeper = group.create_task(delete_succeeded(api))
        creating = group.create_task(send(api, arrivals, scheduler, sent))
        await _follow(ground, contest, sent, screen, sent.began + arrivals[-1].at_seconds + DRAIN_SECONDS)
        await creating
        sweeper.cancel()
    return sent


async def _follow(ground: Environment, contest: RunId, sent: SentPods, screen: Screen, until: float) -> None:
    """Show the contest until every pod has come to an end, or the time is up."""
    while time.time() < until:
        # In a thread: drawing takes tens of milliseconds, and the load has a schedule to hold.
        cells = await asyncio.to_thread(schedulers.learned_rates, ground.address)
        scene = await asyncio.to_thread(take_snapshot, ground, contest, sent, cells)
        await asyncio.to_thread(screen.show, scene)
        if scene.is_over:
            return
        await asyncio.sleep(LOOK_EVERY_SECONDS)
    logging.warning(
        "%s: %d pods had not ended %.0f s after the last arrival",
        contest,
        scene.planned - scene.ended,
        DRAIN_SECONDS,
    )


async def _reset(ground: Environment) -> None:
    async with _api(ground) as api:
        await delete_all(api)
        await delete_node_profiles(api)


def _api(ground: Environment) -> Api:
    return Api(read_access(ground.plane.kubeconfig))
