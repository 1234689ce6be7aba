"""The act itself: the stream goes on while speeds are swapped and a node freezes, and everything is noted."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import uvloop

from eclectus_e2e.demo import schedulers
from eclectus_e2e.demo.alarm import PREDICTION_FACTOR
from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.perturbations import operator_process
from eclectus_e2e.demo.perturbations.plan import Layout, Settings
from eclectus_e2e.demo.perturbations.prediction import Prediction
from eclectus_e2e.demo.perturbations.truth import RatesAt, SpeedChange, speed_change
from eclectus_e2e.demo.schedulers import SCHEDULERS
from eclectus_e2e.demo.screen import Screen
from eclectus_e2e.demo.snapshot import RunId, take_snapshot
from eclectus_e2e.demo.speeds import LearnedRate
from eclectus_e2e.demo.stream.report import ECLECTUS
from eclectus_e2e.demo.workload import load
from eclectus_e2e.demo.workload.arrivals import Arrival, poisson_arrivals
from eclectus_e2e.demo.workload.load import SentPods
from eclectus_e2e.demo.workload.mixed import SCAN, best_capacity, scan_factor
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed.kubelet.api import Api, read_access
from eclectus_e2e.testbed.kubelet.journal import Counters, Entry
from eclectus_e2e.testbed.processes import log_tail

BEGIN_SECONDS = 1.0  # from readiness to the first arrival
NOTE_SECONDS = 1.0  # between two readings of what is believed
PATIENCE = 2.0  # times what is wanted of a wait: then the act goes on without
BACK_SECONDS = 90.0  # usual for the frozen node's return, which the probes' turns decide
DRAIN_SECONDS = 60.0
SILENT_SECONDS = 30.0  # longer than a Lease is held
NOTHING_COUNTED = Counters(
    started=0, finished=0, killed=0, vanished=0, refused={}, overcommitted=0, violations=0
)
_SCHEDULER = SCHEDULERS[ECLECTUS].scheduler_name


@dataclass
class Observations:
    """What was done and seen, in Unix seconds. Grows while the act runs."""

    sent: SentPods
    arrivals: list[Arrival]
    changes: list[SpeedChange] = field(default_factory=list)
    readings: list[RatesAt] = field(default_factory=list)
    marks: dict[str, float] = field(default_factory=dict)  # swap, freeze, ended, thaw, over
    resent: set[str] = field(default_factory=set)  # pods that stood still, were deleted and sent again
    entries: Sequence[Entry] = ()
    counters: Counters = NOTHING_COUNTED


def run(
    ground: Environment, plan: Settings, cast: Layout, expected: Prediction, screen: Screen
) -> Observations:
    """Play the act and wait for its last pod."""
    per_second = plan.load * best_capacity(cast.workers, plan.mix)
    longest = plan.learn_seconds + plan.recover_seconds + plan.rest_seconds + plan.after_seconds
    longest += PATIENCE * (PREDICTION_FACTOR * expected.cut_off + BACK_SECONDS)
    arrivals = poisson_arrivals(plan.seed, per_second, longest, plan.mix)
    screen.say(f"act two: {per_second:.1f} pods a second on {len(cast.workers)} nodes, beside one that idles")
    with schedulers.running(ground, ECLECTUS), operator_process.running(ground):
        noted = Observations(SentPods(len(arrivals), time.time() + BEGIN_SECONDS), arrivals)
        uvloop.run(_Timeline(ground, plan, cast, expected, screen, noted).play())
    return noted


@dataclass
class _Timeline:
    """One performance."""

    ground: Environment
    plan: Settings
    cast: Layout
    expected: Prediction
    screen: Screen
    noted: Observations

    async def play(self) -> None:
        """From the first pod to the last."""
        noted, kubelet = self.noted, self.ground.kubelet
        noted.changes += [speed_change(noted.sent.began, node.name, node.speed) for node in self.cast.nodes]
        async with Api(read_access(self.ground.plane.kubeconfig)) as api, asyncio.TaskGroup() as group:
            going_on = [group.create_task(load.delete_succeeded(api)), group.create_task(self._note())]
            sending = group.create_task(load.send(api, tuple(noted.arrivals), _SCHEDULER, noted.sent))
            await operator_process.ask(api)
            await self._script(api)
            noted.sent.is_over = True  # a request that is cut off may have created its pod, or not
            await sending
            self.screen.say("the last pods end")
            await load.wait_until_empty(api, DRAIN_SECONDS)
            noted.marks["over"] = time.time()
            for task in going_on:
                task.cancel()
        noted.arrivals = [one for one in noted.arrivals if pod_name(one) in noted.sent.at]
        noted.entries, noted.counters = kubelet.journal(), kubelet.counters()

    async def _script(self, api: Api) -> None:
        noted, plan, frozen, after = self.noted, self.plan, self.cast.frozen, self.cast.swapped
        # 1. The cluster is learned.
        await _until(noted.sent.began + plan.learn_seconds)
        # 2. The fast become slow, the slow fast; who suits which work changes with it.
        await self._do("swap", "speeds are swapped", after)
        await _until(noted.marks["swap"] + plan.recover_seconds)
        # 3. One node freezes: what runs there stands still, and its kubelet goes on to say that all is well.
        await self._do("freeze", f"{frozen} freezes", {frozen: 0.0})
        await self._await(
            lambda: self._state() == "dead", PATIENCE * PREDICTION_FACTOR * self.expected.cut_off
        )
        # 4. Whoever sent what stands still gives it up and sends it again, as a Job with a deadline would.
        await self._send_again(api, frozen)
        noted.marks["ended"] = time.time()
        await asyncio.sleep(plan.rest_seconds)
        # 5. It thaws, and no real pod is left there that could show it.
        await self._do("thaw", f"{frozen} thaws", {frozen: after[frozen]})
        await self._await(lambda: self._state() == "live", PATIENCE * BACK_SECONDS)
        await asyncio.sleep(plan.after_seconds)

    async def _do(self, name: str, words: str, speeds: Mapping[str, float]) -> None:
        """Give nodes other speeds. The mark comes first: what is true at that moment is still the old."""
        self.noted.marks[name] = time.time()
        for node, speed in speeds.items():
            factors = {SCAN: scan_factor(speed)} if speed else None
            set_speed = self.ground.kubelet.set_speed
            await asyncio.to_thread(set_speed, speed, nodes=[node], class_factors=factors)
            self.noted.changes.append(speed_change(time.time(), node, speed))
        self.screen.say(words)

    async def _await(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait for it, but no longer: what did not come to pass is told by the report."""
        deadline = time.time() + seconds
        while not condition() and time.time() < deadline:  # noqa: ASYNC110 — it happens in another process
            await asyncio.sleep(NOTE_SECONDS)

    def _state(self) -> str:
        return self.noted.readings[-1].state(self.cast.frozen)

    async def _note(self) -> None:
        """For ever: note what is believed, and show it."""
        contest = RunId("act two", self.plan.load)
        while True:
            cells = await asyncio.to_thread(schedulers.learned_rates, self.ground.address)
            self._heard(cells)
            scene = await asyncio.to_thread(take_snapshot, self.ground, contest, self.noted.sent, cells)
            await asyncio.to_thread(self.screen.show, scene)
            await asyncio.sleep(NOTE_SECONDS)

    def _heard(self, cells: list[LearnedRate]) -> None:
        """Note an answer; raise StartError when there has been none for long, as after a lost Lease."""
        now, instants = time.time(), self.noted.readings
        if cells or not instants or not instants[-1].rates:
            instants.append(RatesAt(now, cells))
        elif now - instants[-1].at > SILENT_SECONDS:
            tail = log_tail(self.ground.plane.directory, schedulers.PROCESS)
            raise StartError(f"the scheduler has not answered for {SILENT_SECONDS:.0f} s\n{tail}")

    async def _send_again(self, api: Api, node: str) -> None:
        noted = self.noted
        by_name = {pod_name(one): one for one in noted.arrivals}
        for name in await load.delete_on_node(api, node):
            again = replace(by_name[name], number=len(noted.arrivals))
            noted.arrivals.append(again)
            noted.resent.add(name)
            await load.create(api, again, _SCHEDULER, noted.sent, time.time())


async def _until(moment: float) -> None:
    await asyncio.sleep(moment - time.time())
