"""The schedulers that are compared, and how each is started and stopped. Only one runs at a time."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.speeds import LearnedRate, SpeedsPage
from eclectus_e2e.testbed import product

ECLECTUS = "eclectus"
KUBE_SCHEDULER = "kube-scheduler"


@dataclass(frozen=True)
class SchedulerSpec:
    """`scheduler_name` is what pods ask for; `profile` replaces fields of the chart's first profile."""

    scheduler_name: str
    profile: Mapping[str, Any] | None = field(default=None)  # None: kube-scheduler


SCHEDULERS = {
    ECLECTUS: SchedulerSpec("eclectus", {}),
    KUBE_SCHEDULER: SchedulerSpec("default-scheduler"),
    "eclectus-uniform": SchedulerSpec("eclectus", {"place": {"policy": "uniform"}}),
    "eclectus-pot": SchedulerSpec("eclectus", {"place": {"policy": "pot"}}),
    "eclectus-least-allocated": SchedulerSpec("eclectus", {"place": {"policy": "least-allocated"}}),
}
DEFAULT_SCHEDULERS = [ECLECTUS, KUBE_SCHEDULER, "eclectus-uniform"]  # of the stream experiment


@contextmanager
def running(environment: Environment, name: str) -> Iterator[None]:
    """Run one of SCHEDULERS for a `with` block; it is ready when the block begins. Raises StartError."""
    profile = SCHEDULERS[name].profile
    if profile is None:
        environment.plane.start_kube_scheduler()
        try:
            yield
        finally:
            environment.plane.stop_kube_scheduler()
        return
    process = product.start_scheduler(
        environment.product,
        dies_with_caller=True,
        name=name,
        change=lambda configuration: configuration["profiles"][0].update(profile),
    )
    try:
        yield
    finally:
        process.stop()


def learned_rates(address: str) -> list[LearnedRate]:
    """What the running Eclectus has learned, from its /speeds; empty when nothing answers."""
    rates: list[LearnedRate] = []
    after = ""
    while answer := product.body(f"{address}/speeds?continue={after}"):
        page = msgspec.json.decode(answer, type=SpeedsPage)
        rates += page.items
        after = page.metadata.get("continue", "")
        if not after:
            return rates
    return []
