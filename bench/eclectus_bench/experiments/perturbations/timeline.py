"""Runs the perturbation experiment: sends the stream, changes speeds, asks for probes, records rates."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import uvloop

from eclectus.api.names import API_VERSION, NODE_PROBES_PATH, PROBED_LABEL
from eclectus_bench.experiments.perturbations.observations import Observations, RatesAt, speed_change
from eclectus_bench.experiments.perturbations.plan import BENCHMARK, RESERVED, Plan
from eclectus_e2e.demo import schedulers
from eclectus_e2e.demo.environment import Environment, operator_running
from eclectus_e2e.demo.schedulers import ECLECTUS, SCHEDULERS
from eclectus_e2e.demo.screen import RunId, Screen, take_snapshot
from eclectus_e2e.demo.speeds import PREDICTION_FACTOR, LearnedRate
from eclectus_e2e.demo.workload import load
from eclectus_e2e.demo.workload.arrivals import poisson_arrivals
from eclectus_e2e.demo.workload.load import SentPods
from eclectus_e2e.demo.workload.mixed import SCAN, scan_factor
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed import product
from eclectus_e2e.testbed.kubelet.api import Api, read_access
from eclectus_e2e.testbed.processes import log_tail

UNITS = 30  # of the benchmark in a probe: about three seconds at speed 1
MILLICORES = 1000  # notional requests of a probe
PER_HOUR = 3600  # the most that one NodeProbe may ask for; the experiment is short,
COUNT = 3  # so it creates three


async def create_node_probes(api: Api) -> None:
    """Ask for as many probes as possible of the nodes with the label PROBED_LABEL."""
    for number in range(COUNT):
        await api.request("POST", NODE_PROBES_PATH, node_probe(f"demo-{number}"))


def node_probe(name: str) -> dict[str, Any]:
    """A NodeProbe of the experiment."""
    limits = {"perHour": PER_HOUR, "leastPerHour": PER_HOUR // 2, "running": 3, "nodeIntervalSeconds": 0}
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeProbe",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {PROBED_LABEL: "true"},
            "tolerations": [{**RESERVED, "operator": "Exists"}],
            "classes": [{"name": BENCHMARK, "unit": {"kind": "cpu", "units": UNITS}}],
            "limits": limits,
            "deadlines": {"schedulingSeconds": 5, "runningSeconds": 10, "deletingSeconds": 5},
        },
    }


BEGIN_SECONDS = 1.0  # from readiness to the first arrival
READ_EVERY_SECONDS = 1.0  # the scheduler's /speeds
TIMEOUT_FACTOR = 2.0  # times the target of a wait; then the run goes on without
RETURN_SECONDS = 90.0  # usual time until the frozen node is back; it depends on when probes get there
DRAIN_SECONDS = 60.0
SILENT_PODS = 2  # that must run on a node when it freezes: one alone may just be long (Prediction.cut_off)
BUSY_SECONDS = 60.0  # the longest wait for them
POLL_SECONDS = 0.1  # pods run for half a second on the node that freezes
SILENT_SECONDS = 30.0  # longer than a Lease is held
_SCHEDULER = SCHEDULERS[ECLECTUS].scheduler_name


def run(environment: Environment, plan: Plan, screen: Screen) -> Observations:
    """Run scheduler and operator through all events, and wait for the last pod."""
    settings = plan.settings
    longest = (
        settings.learn_seconds + settings.recover_seconds + settings.rest_seconds + settings.after_seconds
    )
    longest += BUSY_SECONDS + TIMEOUT_FACTOR * (PREDICTION_FACTOR * plan.prediction.cut_off + RETURN_SECONDS)
    arrivals = poisson_arrivals(settings.seed, plan.pods_per_second, longest, settings.mix)
    with schedulers.running(environment, ECLECTUS), operator_running(environment):
        observations = Observations(SentPods(len(arrivals), time.time() + BEGIN_SECONDS), arrivals)
        uvloop.run(_Timeline(environment, plan, screen, observations).run())
    return observations


@dataclass
class _Timeline:
    """One run."""

    environment: Environment
    plan: Plan
    screen: Screen
    seen: Observations

    async def run(self) -> None:
        """From the first pod to the last."""
        seen, kubelet = self.seen, self.environment.kubelet
        seen.changes += [
            speed_change(seen.sent.began, node.name, node.speed) for node in self.plan.layout.nodes
        ]
        async with Api(read_access(self.environment.plane.kubeconfig)) as api, asyncio.TaskGroup() as group:
            background = [
                group.create_task(load.delete_succeeded(api)),
                group.create_task(self._read_speeds()),
            ]
            sending = group.create_task(load.send(api, tuple(seen.arrivals), _SCHEDULER, seen.sent))
            await create_node_probes(api)
            await self._events(api)
            seen.sent.is_over = True  # not cancelled: a request cut off may or may not have created its pod
            await sending
            self.screen.say("waiting for the last pods")
            await load.wait_until_empty(api, DRAIN_SECONDS)
            seen.events["end"] = time.time()
            for task in background:
                task.cancel()
        seen.arrivals = [one for one in seen.arrivals if pod_name(one) in seen.sent.at]
        seen.entries, seen.counters = kubelet.pod_times(), kubelet.counters()

    async def _events(self, api: Api) -> None:
        seen, settings = self.seen, self.plan.settings
        swapped = self.plan.layout.swapped
        # 1. The speeds are learned.
        await _sleep_until(seen.sent.began + settings.learn_seconds)
        # 2. The fast nodes become slow, the slow ones fast, and so does what each is good at.
        await self._set_speeds("swap", "speeds are swapped", swapped)
        await _sleep_until(seen.events["swap"] + settings.recover_seconds)
        # 3. One node freezes: its containers stand still, and its kubelet goes on to report Ready.
        frozen = seen.frozen = await self._busy_node(api)
        await self._set_speeds("freeze", f"{frozen} freezes", {frozen: 0.0})
        limit = TIMEOUT_FACTOR * PREDICTION_FACTOR * self.plan.prediction.cut_off
        await self._wait_for(lambda: self._state() == "dead", limit)
        # 4. Its pods are deleted and sent again, as by a Job with a deadline.
        await self._resend(api, frozen)
        seen.events["resend"] = time.time()
        await asyncio.sleep(settings.rest_seconds)
        # 5. It thaws, with no real pod left there that could show it.
        await self._set_speeds("thaw", f"{frozen} thaws", {frozen: swapped[frozen]})
        await self._wait_for(lambda: self._state() == "live", TIMEOUT_FACTOR * RETURN_SECONDS)
        await asyncio.sleep(settings.after_seconds)

    async def _busy_node(self, api: Api) -> str:
        """Wait for a node that may freeze with so many pods that its silence will show, or BUSY_SECONDS."""
        deadline = time.time() + BUSY_SECONDS
        while True:
            running = {node: await load.running_on_node(api, node) for node in self.plan.layout.freezing}
            busiest = max(running, key=running.__getitem__)
            if running[busiest] >= SILENT_PODS:
                return busiest
            if time.time() > deadline:
                self.screen.say(f"fewer than {SILENT_PODS} pods run on {busiest}: its silence may not show")
                return busiest
            await asyncio.sleep(POLL_SECONDS)

    async def _set_speeds(self, event: str, text: str, speeds: Mapping[str, float]) -> None:
        """Change speeds of nodes. The event's time is taken before: until then the old speeds are true."""
        self.seen.events[event] = time.time()
        for node, speed in speeds.items():
            factors = {SCAN: scan_factor(speed)} if speed else None
            set_speed = self.environment.kubelet.set_speed
            await asyncio.to_thread(set_speed, speed, nodes=[node], class_factors=factors)
            self.seen.changes.append(speed_change(time.time(), node, speed))
        self.screen.say(text)

    async def _wait_for(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait for a condition or a timeout; the report says which it was."""
        deadline = time.time() + seconds
        while not condition() and time.time() < deadline:  # noqa: ASYNC110 — it happens in another process
            await asyncio.sleep(READ_EVERY_SECONDS)

    def _state(self) -> str:
        return self.seen.readings[-1].state(self.seen.frozen)

    async def _read_speeds(self) -> None:
        """Record the learned rates and show a snapshot, every second until cancelled."""
        run = RunId("perturbations", self.plan.settings.load)
        while True:
            rates = await asyncio.to_thread(schedulers.learned_rates, self.environment.address)
            self._record(rates)
            snapshot = await asyncio.to_thread(take_snapshot, self.environment, run, self.seen.sent, rates)
            await asyncio.to_thread(self.screen.show, snapshot)
            await asyncio.sleep(READ_EVERY_SECONDS)

    def _record(self, rates: list[LearnedRate]) -> None:
        """Record an answer; raises StartError when there was none for long, as after a lost Lease."""
        now, readings = time.time(), self.seen.readings
        if rates or not readings or not readings[-1].rates:
            readings.append(RatesAt(now, rates))
        elif now - readings[-1].at > SILENT_SECONDS:
            tail = log_tail(self.environment.plane.directory, product.SCHEDULER)
            raise StartError(f"the scheduler has not answered for {SILENT_SECONDS:.0f} s\n{tail}")

    async def _resend(self, api: Api, node: str) -> None:
        """Delete the pods of a node and create each again under a new name."""
        seen = self.seen
        by_name = {pod_name(one): one for one in seen.arrivals}
        for name in await load.delete_on_node(api, node):
            again = replace(by_name[name], number=len(seen.arrivals))
            seen.arrivals.append(again)
            seen.resent.add(name)
            await load.create(api, again, _SCHEDULER, seen.sent, time.time())


async def _sleep_until(moment: float) -> None:
    await asyncio.sleep(moment - time.time())
