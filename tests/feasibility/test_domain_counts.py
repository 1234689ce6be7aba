"""What counting pods by domain costs where most pods do not count."""

from __future__ import annotations

from msgspec.structs import replace

from builders import make_task
from eclectus.feasibility.topology.domains import DomainCounts, Domains, spread_pods
from eclectus.model.objects import Requirement, SpreadConstraint
from operation_counts import operations
from small_clusters import cluster_of, node


def test_pods_that_count_nowhere_and_rules_do_not_multiply() -> None:
    def work(scale: int) -> int:
        cluster = cluster_of(node("n", labels={"zone": "a"}))
        rules = [
            SpreadConstraint("zone", "shop", (Requirement("app", "In", (f"app-{at}",)),), counts_itself=False)
            for at in range(scale)
        ]
        domains = Domains(cluster, "zone")
        counts = [DomainCounts(cluster, domains, spread_pods(cluster.pods, each), None) for each in rules]
        for at in range(scale):
            cluster.hold(0, replace(make_task(f"t{at}"), namespace="bank"))
        return operations(lambda: [each.refresh() for each in counts])

    assert work(400) < 3 * work(200), "twice as many of both: a product would be four times as much"
