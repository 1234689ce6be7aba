"""Whatever anybody writes in claims, volumes, StorageClasses, attachments and pods is read; nothing fails.

Objects come, change and go in any order, also while binds wait for them, and binds succeed or are refused.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accepted_fields import IN_ANY_RUN, Drawn
from accepted_storage import CLASSES, NODES, OBJECTS
from builders import make_engine, make_node
from eclectus.feasibility.volume_reaches import VolumeMatching
from eclectus.framework import Place
from eclectus.live.watch.reflector import ObjectStore
from eclectus.live.watch.watched_kinds import ClaimStates, WatchedPods, pods_kind, storage_kinds
from eclectus.model.commands import Bind, Fault
from eclectus.model.errors import MalformedError
from eclectus.model.events import BindConfirmed, BindRefused, Event, NodeSeen, Resumed
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.rosella import Rosella

LATER = 3.0


class Cluster:
    """A scheduler that watches storage and pods, as far as events and commands go."""

    def __init__(self, place: Place, seed: int) -> None:
        self.engine, self._rng, self._now = make_engine(place, line=FifoLine()), Random(seed), 0.0
        self._unread: list[MalformedError] = []
        kinds = [*storage_kinds(ClaimStates()), pods_kind(WatchedPods(lambda name: name == "eclectus"))]
        self._stores = {kind.name: ObjectStore(kind, self._unread.append) for kind in kinds}
        self._version = 0
        self.objects: dict[tuple[str, str], Any] = {}
        self._binds: list[Bind] = []
        nodes = (
            make_node(name, cpu=8, labels={"zone": zone}) for name, zone in zip(NODES, "ab", strict=True)
        )
        self.step([*map(NodeSeen, nodes), Resumed()])

    def show(self, kind: str, body: Any) -> None:
        """The object is created or changed; a third of those that exist are deleted instead."""
        key = kind, body["metadata"]["name"]
        what = "DELETED" if key in self.objects and self._rng.random() < 1 / 3 else "MODIFIED"
        if kind == "pods":
            body = self._as_pod(body)
        self._version += 1
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self._version)}}
        event = self._stores[kind].apply(json.dumps({"type": what, "object": body}).encode(), self._now)
        if what == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = body
        self.step([event] if event else [])
        assert not self._unread, body

    def _as_pod(self, body: Any) -> Any:
        """A pod keeps its spec: the API server allows no other change of one than its node."""
        known = self.objects.get(("pods", body["metadata"]["name"]))
        spec = body["spec"] if known is None else {**known["spec"]}
        spec["nodeName"] = spec["nodeName"] or body["spec"]["nodeName"]
        uid = f"uid-{body['metadata']['name']}-{self._version}" if known is None else known["metadata"]["uid"]
        spec["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "1m"}}}]
        metadata = {**body["metadata"], "uid": uid, "generation": self._version + 1}
        return {"metadata": metadata, "spec": spec, "status": body["status"]}

    def step(self, events: list[Event]) -> None:
        """These events, and then nothing for a while; some binds are answered on the way."""
        self._take(events)
        self._take([])
        while self._binds and self._rng.random() < 0.5:
            bind = self._binds.pop(self._rng.randrange(len(self._binds)))
            is_bound = self._rng.random() < 0.5
            answer = (
                BindConfirmed(bind.uid, bind.node) if is_bound else BindRefused(bind.uid, bind.node, "no")
            )
            self._take([answer])

    def _take(self, events: list[Event]) -> None:
        commands = self.engine.step(events, self._now)
        assert not [each for each in commands if isinstance(each, Fault)]
        self._binds += [each for each in commands if isinstance(each, Bind)]
        self._now += LATER
        self.check()

    def check(self) -> None:
        """What is kept of claims and classes is what one finds that looks at everything anew."""
        state = self.engine._state
        fresh = VolumeMatching(state.cluster)
        for reach in state.cluster.volumes.reach.values():
            assert np.array_equal(reach.now, fresh.where(reach.claims)), reach.claims
        for task in state.pending.values():
            assert state.view.classes.recheck(task.spec, task.workload)

    def end(self) -> None:
        """Everything is deleted, and all binds are answered: nothing is left."""
        for (kind, name), body in list(self.objects.items()):
            event = self._stores[kind].apply(
                json.dumps({"type": "DELETED", "object": body}).encode(), self._now
            )
            assert event is not None, name
            self._take([event])
        self._take([BindRefused(bind.uid, bind.node, "gone") for bind in self._binds])
        state = self.engine._state
        assert (len(state.volumes), state.cluster.volumes.storage.decisions, len(state.pending)) == (0, {}, 0)
        assert (len(state.cluster.volumes.attachments), state.cluster.volumes.attached._holders) == (0, {})


def run(data: st.DataObject, place: type[Place]) -> None:
    cluster = Cluster(place(), data.draw(st.integers(0, 2**16)))
    for name in CLASSES:
        late = {
            "metadata": {"name": name},
            "provisioner": "csi.a",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        cluster.show("storageclasses", late)
    drawn: Drawn = st.lists(OBJECTS, min_size=5, max_size=25)
    for kind, body in data.draw(drawn):
        cluster.show(kind, body)
    cluster.end()


@pytest.mark.parametrize("place", [LeastAllocated, Rosella])
@settings(IN_ANY_RUN, max_examples=20, derandomize=True)
@given(data=st.data())
def test_any_storage_is_read_and_followed(place: type[Place], data: st.DataObject) -> None:
    run(data, place)


@pytest.mark.slow
@pytest.mark.parametrize("place", [LeastAllocated, Rosella])
@settings(IN_ANY_RUN, max_examples=1000)
@given(data=st.data())
def test_any_storage_in_many_more_runs(place: type[Place], data: st.DataObject) -> None:
    run(data, place)
