"""Runs the experiment on real nodes: twice, probes learn the quotas and schedulers get pairs of streams."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import msgspec

from eclectus.api.names import NODE_PROBES_PATH, NODE_PROFILES_PATH, PROBE_LABEL
from eclectus_e2e.demo.real.observations import Observations, QuotaInterval, RatesAt, Stream
from eclectus_e2e.demo.real.plan import (
    CLASS,
    LEARNING_LIMITS,
    SCHEDULER_NAMES,
    STREAM_LIMITS,
    Json,
    Plan,
    node_probe,
    work_pod,
)
from eclectus_e2e.demo.real.report import (
    POD_UNITS_SHARE,
    PROBE_UNITS_FACTOR,
    TRIAL_CLASS,
    trial_name,
)
from eclectus_e2e.demo.schedulers import ECLECTUS
from eclectus_e2e.demo.speeds import LearnedRate
from eclectus_e2e.demo.workload.load import DELETE_NOW, PODS
from eclectus_e2e.pairs import alternating, in_turn
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.kubelet.api import MERGE, Api
from eclectus_e2e.testbed.kubelet.objects import Metadata, Pod

LEARN_TIMEOUT_SECONDS = 600.0
DRAIN_TIMEOUT_SECONDS = 300.0  # after the last arrival; a pod that has not ended then counts as lost
_POLL_SECONDS = 1.0
PROBES = f"/api/v1/namespaces/{chart.NAMESPACE}/pods"


class _Class(msgspec.Struct, frozen=True):
    name: str
    rate: float = 0.0
    samples: int = 0


class _Status(msgspec.Struct, frozen=True):
    classes: list[_Class] = []


class _Profile(msgspec.Struct, frozen=True):
    metadata: Metadata
    status: _Status = _Status()


class _Profiles(msgspec.Struct, frozen=True):
    items: list[_Profile]


@dataclass
class Timeline:
    """One run. `set_quota(node, share of a core)` changes the machine."""

    api: Api
    plan: Plan
    cpu: str  # all cores of a node, as its status has them
    set_quota: Callable[[str, float], None]
    say: Callable[[str], None]
    seen: Observations = field(default_factory=Observations)
    is_probing: bool = False  # whether the NodeProbe of the co-location trials exists

    async def run(self) -> Observations:
        """All steps."""
        async with asyncio.TaskGroup() as group:
            background = [group.create_task(self._read_rates()), group.create_task(self._watch_probes())]
            await self.api.request("POST", NODE_PROBES_PATH, node_probe("demo", CLASS, self.plan.units))
            self.say(f"probes learn the quotas of {len(self.plan.quotas)} nodes, with nothing known")
            first = await self._learn(self.plan.quotas)
            capacity = sum(one.rate for one in self.seen.readings[-1].rates)
            await self._pairs(first, capacity)
            self.say("quotas are swapped, and probes learn them again")
            again = await self._learn(self.plan.changed)
            await self._pairs(again, capacity)
            await self._colocation_trials()
            for task in background:
                task.cancel()
        return self.seen

    async def _read_rates(self) -> None:
        """Record the learned rates from the NodeProfiles every second, until cancelled."""
        while True:
            found = msgspec.json.decode(await self.api.request("GET", NODE_PROFILES_PATH), type=_Profiles)
            rates = [
                LearnedRate(profile.metadata.name, one.name, one.rate, one.samples)
                for profile in found.items
                for one in profile.status.classes
                if one.name == CLASS
            ]
            self.seen.readings.append(RatesAt(time.time(), rates))
            await asyncio.sleep(_POLL_SECONDS)

    async def _watch_probes(self) -> None:
        """Record start and end of each probe, until cancelled."""
        async for change in self.api.changes(PROBES, Pod, f"labelSelector={PROBE_LABEL}"):
            for pod in change.items:
                phase = "" if change.kind == "deleted" else pod.status.phase
                self.seen.observe_probe(pod.metadata.name, pod.node, phase, time.time())

    async def _learn(self, quotas: Mapping[str, float]) -> QuotaInterval:
        """Set the quotas and wait until probes have learned them, or for the timeout."""
        for node, quota in quotas.items():
            self.set_quota(node, quota)
        interval = QuotaInterval(quotas, time.time())
        self.seen.intervals.append(interval)
        await self._change_probe(limits=LEARNING_LIMITS)
        await _wait_for(lambda: interval.check_learned(self.seen.readings), LEARN_TIMEOUT_SECONDS)
        await self._change_probe(limits=STREAM_LIMITS)
        return interval

    async def _change_probe(self, **spec: object) -> None:
        await self.api.request("PATCH", f"{NODE_PROBES_PATH}/demo", {"spec": spec}, MERGE)

    async def _pairs(self, interval: QuotaInterval, capacity: float) -> None:
        """Send each pair's pods to one scheduler after the other. `capacity`: pods a second at load 1."""
        for pair in range(self.plan.pairs):
            arrivals = self.plan.arrivals(capacity, pair)
            interval.pairs.append({})
            for name in in_turn(list(SCHEDULER_NAMES), pair):
                which = f"pair {pair + 1} of {self.plan.pairs}"
                self.say(f"{which}: {len(arrivals)} pods in {arrivals[-1]:.0f} s to {name}")
                await self._stream(interval, name, arrivals)

    async def _stream(self, interval: QuotaInterval, name: str, arrivals: Sequence[float]) -> None:
        """Send a stream of the newest pair and wait for its last pod."""
        stream = interval.pairs[-1][name] = Stream(time.time(), len(arrivals))
        prefix = f"{name}-{len(self.seen.intervals)}-{len(interval.pairs)}"
        async with self._watched(stream):
            for number, at in enumerate(arrivals):
                await asyncio.sleep(stream.began + at - time.time())
                pod = work_pod(f"{prefix}-{number:03d}", SCHEDULER_NAMES[name], self.cpu, self.plan.units)
                await self._send(stream, pod)
            await _wait_for(lambda: len(stream.ended) == stream.planned, DRAIN_TIMEOUT_SECONDS)

    async def _colocation_trials(self) -> None:
        """To each node pairs of a pod without a probe and one beside a probe, which runs nowhere else."""
        self.say(f"to each node {self.plan.trials} pods beside a probe, and as many without one")
        seen, planned = self.seen, self.plan.trials * len(self.plan.quotas)
        seen.colocated, seen.alone = Stream(time.time(), planned), Stream(time.time(), planned)
        await self._change_probe(suspend=True)
        async with self._watched(seen.colocated, seen.alone):
            for node in self.plan.quotas:
                # Where one pair ends the next one begins, so a probe starts and ends once for two pairs.
                for trial, is_probed in alternating((False, True), self.plan.trials):
                    await self._set_probed(node, is_probed=is_probed)
                    await self._colocation_trial(node, trial, is_probed=is_probed)
                await self._set_probed(node, is_probed=False)

    async def _set_probed(self, node: str, *, is_probed: bool) -> None:
        """Have a probe run on this node, or none anywhere, and wait until it is so."""
        if is_probed is not self.is_probing:
            self.is_probing = is_probed
            units = round(PROBE_UNITS_FACTOR * self.plan.units)
            if is_probed:
                await self.api.request(
                    "POST", NODE_PROBES_PATH, node_probe("colocation", TRIAL_CLASS, units, node)
                )
            else:
                await self.api.request("DELETE", f"{NODE_PROBES_PATH}/colocation")  # deletes its pod too
        await _wait_for(lambda: self.seen.is_probed() is is_probed, LEARN_TIMEOUT_SECONDS)

    async def _colocation_trial(self, node: str, trial: int, *, is_probed: bool) -> None:
        """Send one pod to this node and wait until it ends."""
        stream = self.seen.colocated if is_probed else self.seen.alone
        units = max(1, round(POD_UNITS_SHARE * self.plan.units))
        name = trial_name(node, trial, is_probed=is_probed)
        pod = work_pod(name, SCHEDULER_NAMES[ECLECTUS], self.cpu, units, klass=TRIAL_CLASS, node=node)
        await self._send(stream, pod)
        await _wait_for(partial(stream.ended.__contains__, name), DRAIN_TIMEOUT_SECONDS)

    async def _send(self, stream: Stream, pod: Json) -> None:
        stream.sent[pod["metadata"]["name"]] = time.time()
        await self.api.request("POST", PODS, pod)

    @asynccontextmanager
    async def _watched(self, *streams: Stream) -> AsyncIterator[None]:
        """Record starts and ends of the streams' pods for a `with` block."""
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch_pods(streams))
            yield
            watching.cancel()

    async def _watch_pods(self, streams: Sequence[Stream]) -> None:
        """Record each pod that starts or ends; delete pods that ended, as a job's controller would."""
        async for change in self.api.changes(PODS, Pod):
            for pod in change.items if change.kind != "deleted" else ():
                name = pod.metadata.name
                stream = next((one for one in streams if name in one.sent), None)
                if stream is not None and stream.observe(name, pod.node, pod.status.phase, time.time()):
                    await self.api.request("DELETE", f"{PODS}/{name}", DELETE_NOW)


async def _wait_for(condition: Callable[[], object], seconds: float) -> None:
    """Wait until a condition is true, or for so long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        await asyncio.sleep(_POLL_SECONDS)
