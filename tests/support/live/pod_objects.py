"""Pods as the API server writes them, and as the engine's tasks."""

from __future__ import annotations

from typing import Any

import msgspec

from eclectus.kube.objects import decode_pod
from eclectus.kube.translate import task_from
from eclectus.model.objects import Task

PAUSE = {"name": "main", "image": "registry.k8s.io/pause:3.10"}


def raw(spec: Any = None, status: Any = None, **metadata: Any) -> bytes:
    """The JSON of a pod named shop/web-0; `metadata` adds to or replaces its metadata."""
    body = {
        "metadata": {"name": "web-0", "namespace": "shop", "uid": "uid-1", **metadata},
        "spec": {"containers": [PAUSE], **(spec or {})},
        "status": status or {},
    }
    return msgspec.json.encode(body)


def task(spec: Any = None, status: Any = None, **metadata: Any) -> Task:
    """The same pod as a task."""
    return task_from(decode_pod(raw(spec, status, **metadata)))
