"""Anti-affinity of pods on nodes, by examples: which pods a term matches, and which rows it excludes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import PodAffinityTerm, Requirement, Spec, Task
from small_clusters import cluster_of, node, runs_on


@dataclass
class Neighbours:
    """Two zones; a pod in the first keeps pods labelled app=web away."""

    term = PodAffinityTerm("zone", (Requirement("app", "In", ("web",)),), ("shop",))

    def __post_init__(self) -> None:
        self.cluster = cluster_of(
            node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("none")
        )
        self.pod = Task("u", "shop", "p", anti_affinity_terms=(self.term,), labels=(("app", "web"),))
        self.cluster.hold(self.cluster.rows["a1"], self.pod)

    def fits(self, namespace: str, **labels: str) -> set[str]:
        matched = self.cluster.anti_affinity.matching(namespace, tuple(sorted(labels.items())))
        return runs_on(self.cluster, Spec(matched_terms=matched))


def test_a_domain_is_excluded_for_matching_pods_only() -> None:
    world = Neighbours()
    everywhere = {"a1", "a2", "b1", "none"}
    assert world.fits("shop", app="web") == {"b1", "none"}
    assert world.fits("shop", app="db") == everywhere
    assert world.fits("bank", app="web") == everywhere
    world.cluster.release(world.cluster.rows["a1"], world.pod)
    assert world.fits("shop", app="web") == everywhere


def test_a_class_follows_terms_on_other_nodes_of_the_domain() -> None:
    world = Neighbours()
    task_class = TaskClass(world.cluster, Spec(matched_terms=(world.term,)), "w")
    a2 = world.cluster.rows["a2"]
    assert not task_class.fits_now[a2]
    world.cluster.release(world.cluster.rows["a1"], world.pod)
    task_class.refresh()
    assert task_class.fits_now[a2]
    world.cluster.hold(world.cluster.rows["a1"], world.pod)
    task_class.refresh()
    assert not task_class.fits_now[a2]
    world.cluster.set_node(node("a1", zone="b"))  # the pod's node moves to the other zone
    task_class.refresh()
    assert set(task_class.fits_now_rows) == {a2, world.cluster.rows["none"]}


@pytest.mark.parametrize(
    ("requirement", "labels", "matches"),
    [
        (Requirement("app", "In", ("web", "db")), {"app": "db"}, True),
        (Requirement("app", "In", ("web",)), {}, False),
        (Requirement("app", "NotIn", ("web",)), {}, True),
        (Requirement("app", "NotIn", ("web",)), {"app": "web"}, False),
        (Requirement("app", "Exists"), {"app": ""}, True),
        (Requirement("app", "Exists"), {}, False),
        (Requirement("app", "DoesNotExist"), {}, True),
        (Requirement("app", "DoesNotExist"), {"app": "web"}, False),
    ],
)
def test_which_pods_a_term_matches(requirement: Requirement, labels: dict[str, str], matches: bool) -> None:
    cluster = cluster_of(node("a"))
    term = PodAffinityTerm("zone", (requirement,))
    cluster.hold(0, Task("u", "n", "p", anti_affinity_terms=(term,)))
    assert cluster.anti_affinity.matching("any", tuple(labels.items())) == ((term,) if matches else ())


def test_the_generation_counts_distinct_terms_and_not_pods() -> None:
    cluster = cluster_of(node("a"))
    tasks = [Task(str(i), "n", "p", anti_affinity_terms=(PodAffinityTerm("zone"),)) for i in range(3)]
    for task in tasks:
        cluster.hold(0, task)
    assert (len(cluster.anti_affinity), cluster.anti_affinity.generation) == (1, 1)
    for task in tasks:
        cluster.release(0, task)
    assert (len(cluster.anti_affinity), cluster.anti_affinity.generation) == (0, 1)
    cluster.hold(0, tasks[0])
    assert cluster.anti_affinity.generation == 2
