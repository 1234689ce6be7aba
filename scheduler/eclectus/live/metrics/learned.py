"""What has been learned, in few series: by group of nodes and class of work, both of them bounded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import get_args

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from eclectus.cluster.node_groups import OTHER
from eclectus.config.shell import Metrics as Settings
from eclectus.live.metrics.families import counter, gauge
from eclectus.model.learned import LearnedGroup, LearnedSummary, NodeState

Ask = Callable[[str, int, float], tuple[list[str], LearnedSummary | None]]
"""(label, most groups, now) -> names of groups and what is known of them: Engine.digest."""

GROUP, STATE = ("group", "class"), ("group", "state")


class LearnedCollector(Collector):
    """Asks the learner when somebody asks us. Nothing where the learner does not say."""

    def __init__(self, ask: Ask, now: Callable[[], float], settings: Settings) -> None:
        self._ask, self._now, self._settings = ask, now, settings

    def collect(self) -> Iterable[Metric]:
        """Called when /metrics is asked for."""
        settings = self._settings
        names, digest = self._ask(settings.node_group_label, settings.most_groups, self._now())
        if digest is not None:
            yield from _in_all(digest)
            yield from _by_group(names, digest, settings.most_classes)


def _in_all(digest: LearnedSummary) -> Iterator[Metric]:
    capacity = "Tasks a second that all live nodes can surely do; 0 while nothing is known."
    yield gauge("arrival_rate", "Tasks a second that come, to all schedulers.", (), [((), digest.arrivals)])
    yield gauge("service_capacity", capacity, (), [((), digest.capacity)])
    yield counter("arrivals", "Tasks that have come, to all schedulers.", (), [((), digest.arrived)])
    yield counter("samples", "Tasks whose time has been learned from.", (), [((), digest.samples)])
    yield counter(
        "speed_alarms",
        "Changes of a node's speed found: older samples of one class there were given up.",
        (),
        [((), digest.alarms)],
    )


def _by_group(names: list[str], digest: LearnedSummary, most_classes: int) -> Iterator[Metric]:
    nodes = {(group, state): count for group, state, count in digest.states}
    states = [
        ((name, state), nodes.get((group, state), 0))
        for group, name in enumerate(names)
        for state in get_args(NodeState)
    ]
    known = {
        (names[group], workload): _mean(parts)
        for (group, workload), parts in _within(digest.work, most_classes).items()
    }
    yield gauge("nodes", "Nodes by what is believed of them.", STATE, states)
    yield gauge(
        "learned_nodes",
        "Nodes with samples.",
        GROUP,
        ((labels, nodes) for labels, (nodes, _, _) in known.items()),
    )
    yield gauge(
        "learned_speed_ratio",
        "Their mean rate over that of all nodes.",
        GROUP,
        ((labels, speed) for labels, (_, speed, _) in known.items()),
    )
    yield gauge(
        "learned_confidence_ratio",
        "Their mean chance that the rate is within a third of the truth.",
        GROUP,
        ((labels, confidence) for labels, (_, _, confidence) in known.items()),
    )


def _within(work: Iterable[LearnedGroup], most: int) -> dict[tuple[int, str], list[LearnedGroup]]:
    """The same by group and class, the classes with fewest samples together."""
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
    """(nodes, speed, confidence); a node counts once for each class."""
    nodes = sum(each.nodes for each in parts)
    speed = sum(each.nodes * each.speed for each in parts) / nodes
    return nodes, speed, sum(each.nodes * each.confidence for each in parts) / nodes
