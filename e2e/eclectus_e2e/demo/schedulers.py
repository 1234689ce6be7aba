"""The schedulers that are compared, and how each is started and stopped. Only one runs at a time."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.speeds import LearnedRate, SpeedsPage
from eclectus_e2e.testbed import product

ECLECTUS = "eclectus"
KUBE_SCHEDULER = "kube-scheduler"
ECLECTUS_PHOENIX = "eclectus-phoenix"  # prices of scarce nodes, and no speeds
CARBYNE = "eclectus-carbyne"
DELAY, NO_DELAY = "eclectus-delay", "eclectus-least-allocated"
COPIES, NO_COPIES = "eclectus-late", "eclectus-no-copies"


@dataclass(frozen=True)
class SchedulerSpec:
    """`scheduler_name` is what pods ask for; the others replace fields of the chart's configuration."""

    scheduler_name: str
    profile: Mapping[str, Any] | None = None  # of the first profile; None: kube-scheduler
    configuration: Mapping[str, Any] = field(default_factory=dict)  # beside the profiles


SCHEDULERS = {
    ECLECTUS: SchedulerSpec("eclectus", {}),
    KUBE_SCHEDULER: SchedulerSpec("default-scheduler"),
    "eclectus-uniform": SchedulerSpec("eclectus", {"place": {"policy": "uniform"}}),
    "eclectus-pot": SchedulerSpec("eclectus", {"place": {"policy": "pot"}}),
    NO_DELAY: SchedulerSpec("eclectus", {"place": {"policy": "least-allocated"}}),
    DELAY: SchedulerSpec(
        "eclectus", {"place": {"policy": "least-allocated"}, "hold": {"policy": "delay", "nodeWait": 5}}
    ),
    COPIES: SchedulerSpec("eclectus", {"speculate": {"policy": "late"}}),
    NO_COPIES: SchedulerSpec("eclectus", {"speculate": {"policy": "none"}}),
    ECLECTUS_PHOENIX: SchedulerSpec(
        "eclectus", {"place": {"policy": "phoenix"}}, {"learn": {"policy": "none"}}
    ),
    CARBYNE: SchedulerSpec("eclectus", {"order": {"policy": "carbyne"}}),
    "eclectus-drf": SchedulerSpec("eclectus", {"order": {"policy": "drf", "by": "job"}}),
    "eclectus-srtf": SchedulerSpec("eclectus", {"order": {"policy": "srtf"}}),
    "eclectus-fifo": SchedulerSpec("eclectus", {"order": {"policy": "fifo"}}),
}
DAG_SCHEDULERS = [CARBYNE, "eclectus-drf", "eclectus-srtf", "eclectus-fifo", KUBE_SCHEDULER]
SCARCE_SCHEDULERS = [ECLECTUS, ECLECTUS_PHOENIX, KUBE_SCHEDULER]
DATA_SCHEDULERS = [DELAY, NO_DELAY]
COPIES_SCHEDULERS = [COPIES, NO_COPIES]
# Of the comparison, whose pods have no constraints, no jobs and no data.
COMPARED_SCHEDULERS = [
    name
    for name in SCHEDULERS
    if name == KUBE_SCHEDULER or name not in (ECLECTUS_PHOENIX, DELAY, COPIES, NO_COPIES, *DAG_SCHEDULERS)
]
DEFAULT_SCHEDULERS = [ECLECTUS, KUBE_SCHEDULER, "eclectus-uniform"]  # of the stream experiment


@contextmanager
def running(environment: Environment, name: str) -> Iterator[None]:
    """Run one of SCHEDULERS for a `with` block; it is ready when the block begins. Raises StartError."""
    spec = SCHEDULERS[name]
    if spec.profile is None:
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
        change=partial(configure, spec),
    )
    try:
        yield
    finally:
        process.stop()


def configure(spec: SchedulerSpec, configuration: dict[str, Any]) -> None:
    """Replace the fields of the spec in the chart's configuration."""
    configuration.update(spec.configuration)
    configuration["profiles"][0].update(spec.profile or {})


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
