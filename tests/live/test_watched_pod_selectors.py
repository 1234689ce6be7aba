"""Services and controllers as watched kinds: what is kept of each."""

from __future__ import annotations

import json
from typing import Any

from eclectus.kube.objects import decode_list
from eclectus.live.watch.reflector import ObjectStore
from eclectus.live.watch.watched_kinds import POD_SELECTOR_KINDS
from eclectus.model.errors import MalformedError
from eclectus.model.events import Event, PodSelectorGone, PodSelectorSeen
from eclectus.model.objects import PodSelector, Requirement

WEB = (Requirement("app", "In", ("web",)),)
SELECTOR = {"matchLabels": {"app": "web"}}
KINDS = {kind.name: kind for kind in POD_SELECTOR_KINDS}


def replica_set(name: str, version: str = "1", **spec: Any) -> Any:
    meta = {"namespace": "shop", "name": name, "resourceVersion": version}
    return {"metadata": meta, "spec": {"selector": SELECTOR, "replicas": 1, **spec}}


def store() -> tuple[ObjectStore, list[MalformedError]]:
    problems: list[MalformedError] = []
    return ObjectStore(KINDS["replicasets"], problems.append), problems


def listed(objects: ObjectStore, *items: Any) -> list[Event]:
    page = json.dumps({"metadata": {"resourceVersion": "9"}, "items": items}).encode()
    objects.start_list()
    return [*objects.page(decode_list(page), 0.0), *objects.end_list()]


def seen(name: str) -> PodSelectorSeen:
    return PodSelectorSeen(PodSelector("ReplicaSet", "shop", name, WEB))


def gone(name: str) -> PodSelectorGone:
    return PodSelectorGone("ReplicaSet", "shop", name)


def test_all_four_kinds_are_watched() -> None:
    paths = [kind.path for kind in KINDS.values()]
    assert paths == [
        "/api/v1/services",
        "/api/v1/replicationcontrollers",
        "/apis/apps/v1/replicasets",
        "/apis/apps/v1/statefulsets",
    ]


def test_what_wants_no_pods_is_gone_and_not_kept() -> None:
    objects, problems = store()
    assert listed(objects, replica_set("new"), replica_set("old", replicas=0)) == [seen("new"), gone("old")]
    assert len(objects._known) == 1
    line = json.dumps({"type": "MODIFIED", "object": replica_set("new", "2", replicas=0)}).encode()
    assert objects.apply(line, 0.0) == gone("new")
    assert (objects._known, problems) == ({}, [])


def test_one_that_cannot_be_read_does_not_stop_the_others() -> None:
    objects, problems = store()
    assert listed(objects, replica_set("bad", selector=7), replica_set("good")) == [seen("good")]
    assert "ReplicaSet shop/bad: spec.selector" in str(problems[0])
