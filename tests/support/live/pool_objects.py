"""Pools as the API server writes them."""

from __future__ import annotations

from typing import Any

import msgspec

from eclectus.api.names import API_VERSION, POOL


def pool(name: str = "research", *, status: Any = None, version: str = "1", **spec: Any) -> Any:
    """A Pool; `spec` in camel case."""
    metadata = {"name": name, "uid": f"uid-{name}", "generation": 1, "resourceVersion": version}
    return {
        "apiVersion": API_VERSION,
        "kind": POOL,
        "metadata": metadata,
        "spec": spec,
        "status": status or {},
    }


def new_pool(name: str = "research", **spec: Any) -> Any:
    """A Pool as users write it."""
    return {"apiVersion": API_VERSION, "kind": POOL, "metadata": {"name": name}, "spec": spec}


def raw(name: str = "research", **fields: Any) -> msgspec.Raw:
    """The JSON of the same."""
    return msgspec.Raw(msgspec.json.encode(pool(name, **fields)))
