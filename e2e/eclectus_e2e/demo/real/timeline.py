"""The act itself, twice: probes learn the quotas, then a stream goes to each scheduler."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import msgspec

from eclectus_e2e.demo.real.colocation import CLASS as CLASS_MET
from eclectus_e2e.demo.real.colocation import POD_UNITS_SHARE, PODS_PER_NODE, PROBE_UNITS_FACTOR
from eclectus_e2e.demo.real.objects import CLASS, EAGER, MODEST, Json, node_probe, work_pod
from eclectus_e2e.demo.real.observations import Observations, QuotaInterval, RatesAt, Stream
from eclectus_e2e.demo.real.plan import SCHEDULER_NAMES, Plan
from eclectus_e2e.demo.speeds import LearnedRate
from eclectus_e2e.demo.stream.report import ECLECTUS
from eclectus_e2e.demo.workload.load import NODE_PROFILES, PODS
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.kubelet.api import MERGE, Api
from eclectus_e2e.testbed.kubelet.objects import Metadata, Pod

LEARN_TIMEOUT_SECONDS = 600.0
DRAIN_TIMEOUT_SECONDS = 300.0  # after the last arrival; who has not ended then is lost
_LOOK_EVERY_SECONDS = 1.0
PROBES = f"/api/v1/namespaces/{chart.NAMESPACE}/pods"
_API = "/apis/eclectus.dev/v1alpha1"
_AT_ONCE = {"gracePeriodSeconds": 0}


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
    """One performance; `set_quota(node, share)` is the machine's."""

    api: Api
    plan: Plan
    cpu: str  # a node's every core, as its status says
    set_quota: Callable[[str, float], None]
    say: Callable[[str], None]
    noted: Observations = field(default_factory=Observations)

    async def play(self) -> Observations:
        """All of it."""
        async with asyncio.TaskGroup() as group:
            watching = [group.create_task(self._look()), group.create_task(self._watch_probes())]
            await self.api.request("POST", f"{_API}/nodeprobes", node_probe("demo", CLASS, self.plan.units))
            self.say(f"probes learn the quotas of {len(self.plan.quotas)} nodes, from nothing")
            first = await self._learn(self.plan.quotas)
            arrivals = self.plan.arrivals(sum(cell.rate for cell in self.noted.readings[-1].rates))
            await self._streams(first, arrivals)
            self.say("the quotas change places, and probes learn them again")
            again = await self._learn(self.plan.changed)
            await self._streams(again, arrivals)
            await self._meetings()
            for task in watching:
                task.cancel()
        return self.noted

    async def _look(self) -> None:
        """Note what is believed, for ever."""
        while True:
            found = msgspec.json.decode(await self.api.request("GET", NODE_PROFILES), type=_Profiles)
            cells = [
                LearnedRate(profile.metadata.name, one.name, one.rate, one.samples)
                for profile in found.items
                for one in profile.status.classes
                if one.name == CLASS
            ]
            self.noted.readings.append(RatesAt(time.time(), cells))
            await asyncio.sleep(_LOOK_EVERY_SECONDS)

    async def _watch_probes(self) -> None:
        """Note when each ran, for ever."""
        async for seen in self.api.changes(PROBES, Pod, "labelSelector=eclectus.dev/probe"):
            for pod in seen.items:
                phase = "" if seen.kind == "deleted" else pod.status.phase
                self.noted.observe_probe(pod.metadata.name, pod.node, phase, time.time())

    async def _learn(self, quotas: Mapping[str, float]) -> QuotaInterval:
        """Put these in force, and let probes learn them until they have, or the patience is over."""
        for node, quota in quotas.items():
            self.set_quota(node, quota)
        spell = QuotaInterval(quotas, time.time())
        self.noted.intervals.append(spell)
        await self._change(limits=EAGER)
        await _until(lambda: spell.check_learned(self.noted.readings), LEARN_TIMEOUT_SECONDS)
        await self._change(limits=MODEST)
        return spell

    async def _change(self, **spec: object) -> None:
        await self.api.request("PATCH", f"{_API}/nodeprobes/demo", {"spec": spec}, MERGE)

    async def _streams(self, spell: QuotaInterval, arrivals: Sequence[float]) -> None:
        for name in SCHEDULER_NAMES:
            self.say(f"{name}: {len(arrivals)} pods in {self.plan.seconds:.0f} s")
            await self._stream(spell, name, arrivals)

    async def _stream(self, spell: QuotaInterval, name: str, arrivals: Sequence[float]) -> None:
        """Send it, and wait for its last pod."""
        stream = spell.streams[name] = Stream(time.time(), len(arrivals))
        prefix = f"{name}-{len(self.noted.intervals)}"
        async with self._reaped(stream):
            for number, at in enumerate(arrivals):
                await asyncio.sleep(stream.began + at - time.time())
                pod = work_pod(f"{prefix}-{number:03d}", SCHEDULER_NAMES[name], self.cpu, self.plan.units)
                await self._send(stream, pod)
            await _until(lambda: len(stream.ended) == stream.planned, DRAIN_TIMEOUT_SECONDS)

    async def _meetings(self) -> None:
        """The same pods to each node while a probe runs there, and nowhere else, and while none does."""
        self.say(
            f"{PODS_PER_NODE} pods to each node while a probe runs there, and {PODS_PER_NODE} while none does"
        )
        noted, planned = self.noted, PODS_PER_NODE * len(self.plan.quotas)
        noted.colocated, noted.alone = Stream(time.time(), planned), Stream(time.time(), planned)
        await self._change(suspend=True)
        async with self._reaped(noted.colocated, noted.alone):
            for node in self.plan.quotas:
                await self._visit(noted.alone, "alone", node)
                probe = node_probe("meeting", CLASS_MET, round(PROBE_UNITS_FACTOR * self.plan.units), node)
                await self.api.request("POST", f"{_API}/nodeprobes", probe)
                await self._visit(noted.colocated, "beside", node, is_probed=True)
                await self.api.request("DELETE", f"{_API}/nodeprobes/meeting")  # and with it goes its pod

    async def _visit(self, stream: Stream, prefix: str, node: str, *, is_probed: bool = False) -> None:
        """One pod after another to this node, each once a probe runs there, or once none does."""
        units = max(1, round(POD_UNITS_SHARE * self.plan.units))
        for number in range(PODS_PER_NODE):
            await _until(lambda: self.noted.is_probed() is is_probed, LEARN_TIMEOUT_SECONDS)
            name = f"{prefix}-{node}-{number}"
            pod = work_pod(name, SCHEDULER_NAMES[ECLECTUS], self.cpu, units, klass=CLASS_MET, node=node)
            await self._send(stream, pod)
            await _until(partial(stream.ended.__contains__, name), DRAIN_TIMEOUT_SECONDS)

    async def _send(self, stream: Stream, pod: Json) -> None:
        stream.sent[pod["metadata"]["name"]] = time.time()
        await self.api.request("POST", PODS, pod)

    @asynccontextmanager
    async def _reaped(self, *streams: Stream) -> AsyncIterator[None]:
        """What starts and ends meanwhile is noted."""
        async with asyncio.TaskGroup() as group:
            reaping = group.create_task(self._reap(streams))
            yield
            reaping.cancel()

    async def _reap(self, streams: Sequence[Stream]) -> None:
        """Note each pod that starts or ends, and delete who has ended, as a job's controller would."""
        async for seen in self.api.changes(PODS, Pod):
            for pod in seen.items if seen.kind != "deleted" else ():
                name = pod.metadata.name
                stream = next((one for one in streams if name in one.sent), None)
                if stream is not None and stream.observe(name, pod.node, pod.status.phase, time.time()):
                    await self.api.request("DELETE", f"{PODS}/{pod.metadata.name}", _AT_ONCE)


async def _until(condition: Callable[[], object], seconds: float) -> None:
    """Wait for a condition, or for the time to be over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        await asyncio.sleep(_LOOK_EVERY_SECONDS)
