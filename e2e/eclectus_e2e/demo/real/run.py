"""The act itself, twice: probes learn the quotas, then a stream goes to each scheduler."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import msgspec

from eclectus.api.names import NODE_PROBES_PATH, NODE_PROFILES_PATH, PROBE_LABEL
from eclectus_e2e.demo.load import PODS
from eclectus_e2e.demo.real.colocation import CLASS as CLASS_MET
from eclectus_e2e.demo.real.colocation import LONG, ROUNDS, SHARE
from eclectus_e2e.demo.real.objects import CLASS, EAGER, MODEST, Json, node_probe, work_pod
from eclectus_e2e.demo.real.observations import Instant, Noted, Spell, Stream
from eclectus_e2e.demo.real.plan import SCHEDULERS, Plan
from eclectus_e2e.demo.report import OURS
from eclectus_e2e.demo.speeds import Cell
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.kubelet.api import MERGE, Api
from eclectus_e2e.testbed.kubelet.objects import Metadata, Pod

LEARN_MOST_SECONDS = 600.0
DRAIN_MOST_SECONDS = 300.0  # after the last arrival; who has not ended then is lost
_LOOK_EVERY_SECONDS = 1.0
PROBES = f"/api/v1/namespaces/{chart.NAMESPACE}/pods"
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
class Act:
    """One performance; `set_quota(node, share)` is the machine's."""

    api: Api
    plan: Plan
    cpu: str  # a node's every core, as its status says
    set_quota: Callable[[str, float], None]
    say: Callable[[str], None]
    noted: Noted = field(default_factory=Noted)

    async def play(self) -> Noted:
        """All of it."""
        async with asyncio.TaskGroup() as group:
            watching = [group.create_task(self._look()), group.create_task(self._watch_probes())]
            await self.api.request("POST", NODE_PROBES_PATH, node_probe("demo", CLASS, self.plan.units))
            self.say(f"probes learn the quotas of {len(self.plan.quotas)} nodes, from nothing")
            first = await self._learn(self.plan.quotas)
            arrivals = self.plan.arrivals(sum(cell.rate for cell in self.noted.instants[-1].cells))
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
            found = msgspec.json.decode(await self.api.request("GET", NODE_PROFILES_PATH), type=_Profiles)
            cells = [
                Cell(profile.metadata.name, one.name, one.rate, one.samples)
                for profile in found.items
                for one in profile.status.classes
                if one.name == CLASS
            ]
            self.noted.instants.append(Instant(time.time(), cells))
            await asyncio.sleep(_LOOK_EVERY_SECONDS)

    async def _watch_probes(self) -> None:
        """Note when each ran, for ever."""
        async for seen in self.api.changes(PROBES, Pod, f"labelSelector={PROBE_LABEL}"):
            for pod in seen.items:
                phase = "" if seen.kind == "deleted" else pod.status.phase
                self.noted.see_probe(pod.metadata.name, pod.node, phase, time.time())

    async def _learn(self, quotas: Mapping[str, float]) -> Spell:
        """Put these in force, and let probes learn them until they have, or the patience is over."""
        for node, quota in quotas.items():
            self.set_quota(node, quota)
        spell = Spell(quotas, time.time())
        self.noted.spells.append(spell)
        await self._change(limits=EAGER)
        await _until(lambda: spell.look(self.noted.instants), LEARN_MOST_SECONDS)
        await self._change(limits=MODEST)
        return spell

    async def _change(self, **spec: object) -> None:
        await self.api.request("PATCH", f"{NODE_PROBES_PATH}/demo", {"spec": spec}, MERGE)

    async def _streams(self, spell: Spell, arrivals: Sequence[float]) -> None:
        for name in SCHEDULERS:
            self.say(f"{name}: {len(arrivals)} pods in {self.plan.seconds:.0f} s")
            await self._stream(spell, name, arrivals)

    async def _stream(self, spell: Spell, name: str, arrivals: Sequence[float]) -> None:
        """Send it, and wait for its last pod."""
        stream = spell.streams[name] = Stream(time.time(), len(arrivals))
        prefix = f"{name}-{len(self.noted.spells)}"
        async with self._reaped(stream):
            for number, at in enumerate(arrivals):
                await asyncio.sleep(stream.began + at - time.time())
                pod = work_pod(f"{prefix}-{number:03d}", SCHEDULERS[name], self.cpu, self.plan.units)
                await self._send(stream, pod)
            await _until(lambda: len(stream.ended) == stream.planned, DRAIN_MOST_SECONDS)

    async def _meetings(self) -> None:
        """The same pods to each node while a probe runs there, and nowhere else, and while none does."""
        self.say(f"{ROUNDS} pods to each node while a probe runs there, and {ROUNDS} while none does")
        noted, planned = self.noted, ROUNDS * len(self.plan.quotas)
        noted.beside, noted.alone = Stream(time.time(), planned), Stream(time.time(), planned)
        await self._change(suspend=True)
        async with self._reaped(noted.beside, noted.alone):
            for node in self.plan.quotas:
                await self._visit(noted.alone, "alone", node)
                probe = node_probe("meeting", CLASS_MET, round(LONG * self.plan.units), node)
                await self.api.request("POST", NODE_PROBES_PATH, probe)
                await self._visit(noted.beside, "beside", node, is_probed=True)
                await self.api.request("DELETE", f"{NODE_PROBES_PATH}/meeting")  # and with it goes its pod

    async def _visit(self, stream: Stream, prefix: str, node: str, *, is_probed: bool = False) -> None:
        """One pod after another to this node, each once a probe runs there, or once none does."""
        units = max(1, round(SHARE * self.plan.units))
        for number in range(ROUNDS):
            await _until(lambda: self.noted.is_probed() is is_probed, LEARN_MOST_SECONDS)
            name = f"{prefix}-{node}-{number}"
            pod = work_pod(name, SCHEDULERS[OURS], self.cpu, units, klass=CLASS_MET, node=node)
            await self._send(stream, pod)
            await _until(partial(stream.ended.__contains__, name), DRAIN_MOST_SECONDS)

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
                if stream is not None and stream.see(name, pod.node, pod.status.phase, time.time()):
                    await self.api.request("DELETE", f"{PODS}/{pod.metadata.name}", _AT_ONCE)


async def _until(condition: Callable[[], object], seconds: float) -> None:
    """Wait for a condition, or for the time to be over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        await asyncio.sleep(_LOOK_EVERY_SECONDS)
