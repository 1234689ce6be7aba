"""The act itself: the stream goes on while speeds are swapped and a node freezes, and everything is noted."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import uvloop

from eclectus_e2e.demo import schedulers
from eclectus_e2e.demo.alarm import WANTED
from eclectus_e2e.demo.environment import Ground
from eclectus_e2e.demo.perturbations import operator_process
from eclectus_e2e.demo.perturbations.plan import Cast, Plan
from eclectus_e2e.demo.perturbations.prediction import Prediction
from eclectus_e2e.demo.perturbations.truth import Change, Instant, change
from eclectus_e2e.demo.schedulers import CONTESTANTS
from eclectus_e2e.demo.screen import Screen
from eclectus_e2e.demo.snapshot import Contest, look
from eclectus_e2e.demo.speeds import Cell
from eclectus_e2e.demo.stream.report import OURS
from eclectus_e2e.demo.workload import load
from eclectus_e2e.demo.workload.arrivals import Arrival, stream
from eclectus_e2e.demo.workload.load import Sent
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
_SCHEDULER = CONTESTANTS[OURS].scheduler_name


@dataclass
class Noted:
    """What was done and seen, in Unix seconds. Grows while the act runs."""

    sent: Sent
    arrivals: list[Arrival]
    changes: list[Change] = field(default_factory=list)
    instants: list[Instant] = field(default_factory=list)
    marks: dict[str, float] = field(default_factory=dict)  # swap, freeze, ended, thaw, over
    moved: set[str] = field(default_factory=set)  # pods that stood still, were deleted and sent again
    entries: Sequence[Entry] = ()
    counters: Counters = NOTHING_COUNTED


def run(ground: Ground, plan: Plan, cast: Cast, expected: Prediction, screen: Screen) -> Noted:
    """Play the act and wait for its last pod."""
    per_second = plan.load * best_capacity(cast.workers, plan.mix)
    longest = plan.learn_seconds + plan.recover_seconds + plan.rest_seconds + plan.after_seconds
    longest += PATIENCE * (WANTED * expected.cut_off + BACK_SECONDS)
    arrivals = stream(plan.seed, per_second, longest, plan.mix)
    screen.say(f"act two: {per_second:.1f} pods a second on {len(cast.workers)} nodes, beside one that idles")
    with schedulers.running(ground, OURS), operator_process.running(ground):
        noted = Noted(Sent(len(arrivals), time.time() + BEGIN_SECONDS), arrivals)
        uvloop.run(_Act(ground, plan, cast, expected, screen, noted).play())
    return noted


@dataclass
class _Act:
    """One performance."""

    ground: Ground
    plan: Plan
    cast: Cast
    expected: Prediction
    screen: Screen
    noted: Noted

    async def play(self) -> None:
        """From the first pod to the last."""
        noted, kubelet = self.noted, self.ground.kubelet
        noted.changes += [change(noted.sent.began, node.name, node.speed) for node in self.cast.nodes]
        async with Api(read_access(self.ground.plane.kubeconfig)) as api, asyncio.TaskGroup() as group:
            going_on = [group.create_task(load.sweep(api)), group.create_task(self._note())]
            sending = group.create_task(load.send(api, tuple(noted.arrivals), _SCHEDULER, noted.sent))
            await operator_process.ask(api)
            await self._script(api)
            noted.sent.is_over = True  # a request that is cut off may have created its pod, or not
            await sending
            self.screen.say("the last pods end")
            await load.emptied(api, DRAIN_SECONDS)
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
        await self._await(lambda: self._state() == "dead", PATIENCE * WANTED * self.expected.cut_off)
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
            self.noted.changes.append(change(time.time(), node, speed))
        self.screen.say(words)

    async def _await(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait for it, but no longer: what did not come to pass is told by the report."""
        deadline = time.time() + seconds
        while not condition() and time.time() < deadline:  # noqa: ASYNC110 — it happens in another process
            await asyncio.sleep(NOTE_SECONDS)

    def _state(self) -> str:
        return self.noted.instants[-1].state(self.cast.frozen)

    async def _note(self) -> None:
        """For ever: note what is believed, and show it."""
        contest = Contest("act two", self.plan.load)
        while True:
            cells = await asyncio.to_thread(schedulers.learned, self.ground.address)
            self._heard(cells)
            scene = await asyncio.to_thread(look, self.ground, contest, self.noted.sent, cells)
            await asyncio.to_thread(self.screen.show, scene)
            await asyncio.sleep(NOTE_SECONDS)

    def _heard(self, cells: list[Cell]) -> None:
        """Note an answer; raise StartError when there has been none for long, as after a lost Lease."""
        now, instants = time.time(), self.noted.instants
        if cells or not instants or not instants[-1].cells:
            instants.append(Instant(now, cells))
        elif now - instants[-1].at > SILENT_SECONDS:
            tail = log_tail(self.ground.plane.directory, schedulers.PROCESS)
            raise StartError(f"the scheduler has not answered for {SILENT_SECONDS:.0f} s\n{tail}")

    async def _send_again(self, api: Api, node: str) -> None:
        noted = self.noted
        by_name = {pod_name(one): one for one in noted.arrivals}
        for name in await load.give_up(api, node):
            again = replace(by_name[name], number=len(noted.arrivals))
            noted.arrivals.append(again)
            noted.moved.add(name)
            await load.create(api, again, _SCHEDULER, noted.sent, time.time())


async def _until(moment: float) -> None:
    await asyncio.sleep(moment - time.time())
