"""The engine's counts at /metrics."""

from prometheus_client import CollectorRegistry

from eclectus.engine.counters import Counters, QueueCounts
from eclectus.live.metrics_page import AtScrape, queue_metrics, text

COUNTERS = Counters()
COUNTERS.attempts["scheduled", "eclectus"] = 3
COUNTERS.incoming["active", "PodAdd"] = 5
COUNTERS.plans.slips = 2
COUNTERS.plans.lent_seconds = {"memory": 2.0**30, "cpu": 1500.0}
COUNTERS.copies.won = 4
COUNTERS.copies.refused["poolCopies"] = 6
COUNTS = QueueCounts(
    active=1,
    backoff=2,
    held_back=15,
    unschedulable=3,
    arriving=13,
    gated=4,
    in_gangs=10,
    node_queues=5,
    binding=6,
    nominated=11,
    straggling=12,
    nodes=7,
    classes=8,
    dag_jobs=9,
    resources=14,
    counters=COUNTERS,
)


def test_the_engines_counts_have_kube_schedulers_shapes():
    registry = CollectorRegistry()
    registry.register(AtScrape(lambda: queue_metrics(COUNTS)))
    page = text(registry).decode()
    for line in (
        'eclectus_pending_pods{queue="backoff"} 2.0',
        'eclectus_pending_pods{queue="gang"} 10.0',
        'eclectus_pending_pods{queue="quota"} 15.0',
        'eclectus_schedule_attempts_total{profile="eclectus",result="scheduled"} 3.0',
        'eclectus_queue_incoming_pods_total{event="PodAdd",queue="active"} 5.0',
        "eclectus_pod_scheduled_after_flush_total 0.0",
        "eclectus_nominated_pods 11.0",
        'eclectus_cache_size{type="dag_jobs"} 9.0',
        'eclectus_cache_size{type="resources"} 14.0',
        "eclectus_plan_slips_total 2.0",
        "eclectus_straggling_pods 12.0",
        'eclectus_copies_settled_total{result="won"} 4.0',
        'eclectus_copies_refused_total{reason="poolCopies"} 6.0',
        'eclectus_copy_seconds_total{kind="saved"} 0.0',
        'eclectus_lent_resource_seconds_total{resource="cpu"} 1.5',
        'eclectus_lent_resource_seconds_total{resource="memory"} 1.073741824e+09',
    ):
        assert line in page.splitlines()
