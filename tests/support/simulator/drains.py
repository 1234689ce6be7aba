"""Runs of a bench without a cluster."""

from __future__ import annotations

from typing import Any

from eclectus_bench.drain import Drain


def drained(scheduler: str, pair: int, pace: float, **changes: float) -> Drain:
    """A drained backlog: `pace` is of pods bound a second; with their events half of that, unless changed."""
    fields: dict[str, Any] = {
        "pods": 100,
        "pods_per_second": pace,
        "reported_per_second": pace / 2,
        "start_seconds": 1.0,
        "scheduler_cpu_ms": 2.0,
        "scheduler_cpu_ms_from_start": 3.0,
        "apiserver_cpu_ms": 2.0,
        "etcd_cpu_ms": 0.5,
        "peak_mib": 200.0,
        "events_at_last_bind": 90,
        "events": 100,
        "strangers_cores": 0.0,
    }
    return Drain(scheduler=scheduler, pair=pair, **{**fields, **changes})
