"""Metrics of what is learned: by group of nodes and class of work, both bounded, and of few nodes."""

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from builders import make_engine, make_node, make_task
from eclectus.config.process_settings import MetricsSettings as Settings
from eclectus.live.metrics_page import register_collectors
from eclectus.model.events import NodeSeen, Resumed, TaskSeen
from eclectus.model.objects import Input
from eclectus.policies.hold.delay import Delay
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.rosella import RosellaLearn

LABEL = "node.kubernetes.io/instance-type"


class LearningEngine:
    """An engine with nodes of the given instance types, and its metrics."""

    def __init__(self, types, learn=None, **settings):
        nodes = [make_node(f"n{at}", labels={LABEL: each} if each else {}) for at, each in enumerate(types)]
        self.engine = make_engine(learn=learn or RosellaLearn())
        self.engine.step([Resumed(), *map(NodeSeen, nodes)], 0.0)
        self.now, self._count = 0.0, 0
        self._registry = CollectorRegistry()
        register_collectors(self._registry, self.engine, lambda: self.now, Settings(**settings))

    def run_pod(self, node, seconds, workload="web"):
        """A pod of another scheduler is bound to the node and runs to its end."""
        self._count += 1
        task = make_task(f"t{self._count}", workload=workload, profile="other")
        bound = replace(task, node=node, phase="Running", started=0.0)
        ended = replace(bound, phase="Succeeded", finished=seconds)
        for event in (task, bound, ended):
            self.now += 0.1
            self.engine.step([TaskSeen(event)], self.now)

    def value(self, name, **labels):
        """The value of one sample; None if there is no such sample."""
        labels = {key.rstrip("_"): value for key, value in labels.items()}
        return self._registry.get_sample_value(f"eclectus_{name}", labels)

    def series(self, name):
        """The label values of all samples of a metric."""
        families = self._registry.collect()
        return [
            tuple(sample.labels.values())
            for family in families
            for sample in family.samples
            if sample.name == f"eclectus_{name}"
        ]


def test_the_speed_of_a_group_is_relative_to_the_mean_of_all_nodes():
    learning = LearningEngine(["big", "big", "small", ""])
    for _ in range(30):
        for node, seconds in (("n0", 1.0), ("n1", 1.0), ("n2", 4.0)):
            learning.run_pod(node, seconds)
    fast = learning.value("learned_speed_ratio", group="big", class_="web")
    slow = learning.value("learned_speed_ratio", group="small", class_="web")
    assert fast / slow == pytest.approx(4.0, rel=0.1)
    assert (2 * fast + slow) / 3 == pytest.approx(1.0)
    assert learning.value("learned_nodes", group="big", class_="web") == 2
    assert learning.value("learned_nodes", group="none", class_="web") is None
    assert learning.value("learned_confidence_ratio", group="big", class_="web") > 0.9
    assert learning.value("nodes", group="big", state="live") == 2
    assert learning.value("nodes", group="none", state="unknown") == 1
    assert learning.value("nodes", group="none", state="dead") == 0


def test_pods_of_all_schedulers_are_counted():
    learning = LearningEngine(["big"])
    for _ in range(50):
        learning.run_pod("n0", 1.0)
    assert learning.value("arrivals_total") == learning.value("samples_total") == 50
    assert learning.value("arrival_rate") == pytest.approx(1 / 0.3, rel=0.05)
    assert learning.value("speed_alarms_total") == 0
    for _ in range(30):
        learning.run_pod("n0", 10.0)
        learning.run_pod("n0", 1.0, "other work")
    assert learning.value("samples_total") == 110


def test_a_detected_change_of_speed_is_counted():
    learning = LearningEngine(["big"] * 4)
    for slow in (1.0, 20.0):
        for _ in range(40):
            for node in range(4):
                learning.run_pod(f"n{node}", slow if node == 0 else 1.0)
    assert learning.value("speed_alarms_total") >= 1


def test_groups_and_classes_beyond_the_bounds_become_other():
    learning = LearningEngine([f"type-{at // 2}" for at in range(20)], most_groups=4, most_classes=3)
    for at in range(20):
        for work in range(6):
            for _ in range(1 + (work < 2)):
                learning.run_pod(f"n{at}", 1.0, f"work-{work}")
    groups = {group for group, _ in learning.series("learned_speed_ratio")}
    assert groups == {"type-0", "type-1", "type-2", "other"}
    assert {work for _, work in learning.series("learned_speed_ratio")} == {"work-0", "work-1", "other"}
    assert len(learning.series("learned_speed_ratio")) == 12
    assert len(learning.series("nodes")) == 16
    assert learning.value("nodes", group="other", state="live") == 14
    assert learning.value("learned_nodes", group="other", class_="other") == 14 * 4
    assert learning.value("learned_speed_ratio", group="other", class_="other") == pytest.approx(1.0, rel=0.1)


def test_the_slowest_and_the_fastest_nodes_have_a_series_each_whatever_their_labels():
    learning = LearningEngine([""] * 60)
    for at in range(50):
        for work, seconds in (("web", 1.0 + at), ("batch", 10.0 + 10.0 * at)):
            learning.run_pod(f"n{at}", seconds, work)
    named = {node for (node,) in learning.series("learned_node_speed_ratio")}
    assert named == {f"n{at}" for at in (*range(20), *range(30, 50))}
    speeds = [learning.value("learned_node_speed_ratio", node=f"n{at}") for at in (0, 19, 49)]
    assert speeds == sorted(speeds, reverse=True)
    assert speeds[0] > 1.0 > speeds[2]


def test_of_few_nodes_each_has_one_series():
    learning = LearningEngine(["big", "big", "small"])
    for node, seconds in (("n0", 1.0), ("n2", 1.0)):
        learning.run_pod(node, seconds)
    assert sorted(learning.series("learned_node_speed_ratio")) == [("n0",), ("n2",)]
    assert learning.value("learned_node_speed_ratio", node="n0") == pytest.approx(1.0)


def test_a_node_with_a_changed_label_changes_its_group():
    learning = LearningEngine(["big", "big"])
    learning.engine.step([NodeSeen(make_node("n1", labels={LABEL: "small"}))], 1.0)
    assert learning.value("nodes", group="small", state="unknown") == 1
    assert learning.value("nodes", group="big", state="unknown") == 1


def test_a_learner_without_a_summary_has_no_such_metrics():
    learning = LearningEngine(["big"], learn=Unlearned())
    assert learning.value("arrival_rate") is None
    assert learning.series("nodes") == []


def test_how_much_longer_pods_take_away_from_their_data():
    engine, registry = make_engine(hold=Delay()), CollectorRegistry()
    engine.step([Resumed(), NodeSeen(make_node("n1")), NodeSeen(make_node("n2"))], 0.0)
    register_collectors(registry, engine, lambda: 0.0, Settings())
    for at in range(40):
        bound = make_task(f"t{at}", workload="a/w", node="n1", phase="Running")
        bound = replace(bound, inputs=(Input("data", 1, ("n1" if at % 2 else "n2",)),))
        ended = replace(bound, phase="Succeeded", started=0.0, finished=10.0 if at % 2 else 20.0)
        assert registry.get_sample_value("eclectus_data_gain_ratio", {"class": "a/w"}) is None
        engine.step([TaskSeen(bound)], 2.0 * at)
        engine.step([TaskSeen(ended)], 2.0 * at + 1)
    ratio = registry.get_sample_value("eclectus_data_gain_ratio", {"class": "a/w"})
    assert ratio == pytest.approx(1.877, rel=1e-3)
