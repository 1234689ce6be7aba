"""What /metrics says of what is learned: by group and class, both bounded, and nothing by node."""

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.config.shell import Metrics as Settings
from eclectus.live.metrics import Metrics
from eclectus.live.metrics.learned import LearnedCollector
from eclectus.model.events import NodeSeen, Resumed, TaskSeen
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.rosella import RosellaLearn

LABEL = "node.kubernetes.io/instance-type"


class Shop:
    """An engine that learns on nodes of given types, and its /metrics."""

    def __init__(self, types, learn=None, **settings):
        nodes = [make_node(f"n{at}", labels={LABEL: each} if each else {}) for at, each in enumerate(types)]
        self.engine = make_engine(learn=learn or RosellaLearn())
        self.engine.step([Resumed(), *map(NodeSeen, nodes)], 0.0)
        self.now, self._count = 0.0, 0
        self._metrics = Metrics()
        self._metrics.registry.register(
            LearnedCollector(self.engine.learned_summary, lambda: self.now, Settings(**settings))
        )

    def ran(self, node, seconds, workload="web"):
        """A pod of another scheduler was bound there, and ran to its end."""
        self._count += 1
        task = make_task(f"t{self._count}", workload=workload, profile="other")
        bound = replace(task, node=node, phase="Running", started=0.0)
        ended = replace(bound, phase="Succeeded", finished=seconds)
        for event in (task, bound, ended):
            self.now += 0.1
            self.engine.step([TaskSeen(event)], self.now)

    def figure(self, name, **labels):
        """One sample; None if it is not there."""
        labels = {key.rstrip("_"): value for key, value in labels.items()}
        return self._metrics.registry.get_sample_value(f"eclectus_{name}", labels)

    def series(self, name):
        """The labels of all samples of a name."""
        families = self._metrics.registry.collect()
        return [
            tuple(sample.labels.values())
            for family in families
            for sample in family.samples
            if sample.name == f"eclectus_{name}"
        ]


def test_groups_are_told_relative_to_the_mean_of_all_nodes():
    shop = Shop(["big", "big", "small", ""])
    for _ in range(30):
        for node, seconds in (("n0", 1.0), ("n1", 1.0), ("n2", 4.0)):
            shop.ran(node, seconds)
    fast = shop.figure("learned_speed_ratio", group="big", class_="web")
    slow = shop.figure("learned_speed_ratio", group="small", class_="web")
    assert fast / slow == pytest.approx(4.0, rel=0.1)
    assert (2 * fast + slow) / 3 == pytest.approx(1.0)
    assert shop.figure("learned_nodes", group="big", class_="web") == 2
    assert shop.figure("learned_nodes", group="none", class_="web") is None
    assert shop.figure("learned_confidence_ratio", group="big", class_="web") > 0.9
    assert shop.figure("nodes", group="big", state="live") == 2
    assert shop.figure("nodes", group="none", state="unknown") == 1
    assert shop.figure("nodes", group="none", state="dead") == 0


def test_what_comes_to_all_schedulers_is_counted():
    shop = Shop(["big"])
    for _ in range(50):
        shop.ran("n0", 1.0)
    assert shop.figure("arrivals_total") == shop.figure("samples_total") == 50
    assert shop.figure("arrival_rate") == pytest.approx(1 / 0.3, rel=0.05)
    assert shop.figure("speed_alarms_total") == 0
    for _ in range(30):
        shop.ran("n0", 10.0)
        shop.ran("n0", 1.0, "other work")
    assert shop.figure("samples_total") == 110


def test_a_change_of_speed_is_counted():
    shop = Shop(["big"] * 4)
    for slow in (1.0, 20.0):
        for _ in range(40):
            for node in range(4):
                shop.ran(f"n{node}", slow if node == 0 else 1.0)
    assert shop.figure("speed_alarms_total") >= 1


def test_groups_and_classes_beyond_the_bounds_are_told_together():
    shop = Shop([f"type-{at // 2}" for at in range(20)], most_groups=4, most_classes=3)
    for at in range(20):
        for work in range(6):
            for _ in range(1 + (work < 2)):
                shop.ran(f"n{at}", 1.0, f"work-{work}")
    groups = {group for group, _ in shop.series("learned_speed_ratio")}
    assert groups == {"type-0", "type-1", "type-2", "other"}
    assert {work for _, work in shop.series("learned_speed_ratio")} == {"work-0", "work-1", "other"}
    assert len(shop.series("learned_speed_ratio")) == 12
    assert len(shop.series("nodes")) == 16
    assert shop.figure("nodes", group="other", state="live") == 14
    assert shop.figure("learned_nodes", group="other", class_="other") == 14 * 4
    assert shop.figure("learned_speed_ratio", group="other", class_="other") == pytest.approx(1.0, rel=0.1)


def test_a_node_that_goes_or_changes_its_label_changes_its_group():
    shop = Shop(["big", "big"])
    shop.engine.step([NodeSeen(make_node("n1", labels={LABEL: "small"}))], 1.0)
    assert shop.figure("nodes", group="small", state="unknown") == 1
    assert shop.figure("nodes", group="big", state="unknown") == 1


def test_a_learner_that_does_not_say_has_no_such_series():
    shop = Shop(["big"], learn=Unlearned())
    assert shop.figure("arrival_rate") is None
    assert shop.series("nodes") == []
