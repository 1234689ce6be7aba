"""Metrics of what has been learned, by group of nodes and class of work; the number of both is bounded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import get_args

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from eclectus.cluster.node_groups import OTHER
from eclectus.config.process_settings import MetricsSettings as Settings
from eclectus.live.metrics.families import observed
from eclectus.model.learned import LearnedGroup, LearnedSummary, NodeState

Summarise = Callable[[str, int, float], tuple[list[str], LearnedSummary | None]]
"""(node label, most groups, now) -> names of the groups, and the summary: Engine.learned_summary."""


class LearnedCollector(Collector):
    """Reads the learner at each scrape. Yields nothing if the learner has no summary."""

    def __init__(self, summarise: Summarise, now: Callable[[], float], settings: Settings) -> None:
        self._summarise, self._now, self._settings = summarise, now, settings

    def collect(self) -> Iterable[Metric]:
        """The metrics at the time of a scrape."""
        settings = self._settings
        names, summary = self._summarise(settings.node_group_label, settings.most_groups, self._now())
        if summary is not None:
            yield from _totals(summary)
            yield from _by_group(names, summary, settings.most_classes)


def _totals(summary: LearnedSummary) -> Iterator[Metric]:
    yield observed("arrival_rate", [((), summary.arrivals)])
    yield observed("service_capacity", [((), summary.capacity)])
    yield observed("arrivals", [((), summary.arrived)])
    yield observed("samples", [((), summary.samples)])
    yield observed("speed_alarms", [((), summary.alarms)])


def _by_group(names: list[str], summary: LearnedSummary, most_classes: int) -> Iterator[Metric]:
    nodes = {(group, state): count for group, state, count in summary.states}
    states = [
        ((name, state), nodes.get((group, state), 0))
        for group, name in enumerate(names)
        for state in get_args(NodeState)
    ]
    known = {
        (names[group], workload): _mean(parts)
        for (group, workload), parts in _bounded(summary.work, most_classes).items()
    }
    yield observed("nodes", states)
    yield observed("learned_nodes", ((labels, nodes) for labels, (nodes, _, _) in known.items()))
    yield observed("learned_speed_ratio", ((labels, speed) for labels, (_, speed, _) in known.items()))
    yield observed(
        "learned_confidence_ratio", ((labels, confidence) for labels, (_, _, confidence) in known.items())
    )


def _bounded(work: Iterable[LearnedGroup], most: int) -> dict[tuple[int, str], list[LearnedGroup]]:
    """The entries by (group, class), at most `most` classes: those with the fewest samples become `other`."""
    work = list(work)
    samples = defaultdict[str, float](float)
    for each in work:
        samples[each.workload] += each.samples
    ranked = sorted(samples, key=lambda name: (-samples[name], name))
    named = set(ranked if len(ranked) <= most else ranked[: most - 1])
    found: dict[tuple[int, str], list[LearnedGroup]] = {}
    for each in work:
        name = each.workload if each.workload in named else OTHER
        found.setdefault((each.group, name), []).append(each)
    return found


def _mean(parts: list[LearnedGroup]) -> tuple[int, float, float]:
    """(nodes, mean speed, mean confidence); a node counts once per class."""
    nodes = sum(each.nodes for each in parts)
    speed = sum(each.nodes * each.speed for each in parts) / nodes
    return nodes, speed, sum(each.nodes * each.confidence for each in parts) / nodes
