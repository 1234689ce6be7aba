"""The engine's counts at /metrics."""

from eclectus.engine.counters import Counters, QueueCounts
from eclectus.live.metrics import Metrics
from eclectus.live.metrics.queue_counts import QueueCountsCollector

COUNTERS = Counters()
COUNTERS.attempts["scheduled", "eclectus"] = 3
COUNTERS.incoming["active", "PodAdd"] = 5
COUNTS = QueueCounts(1, 2, 3, 4, node_queues=5, binding=6, nodes=7, classes=8, counters=COUNTERS)


def test_the_engines_counts_have_kube_schedulers_shapes():
    metrics = Metrics()
    metrics.registry.register(QueueCountsCollector(lambda: COUNTS))
    text = metrics.expose().decode()
    for line in (
        'eclectus_pending_pods{queue="backoff"} 2.0',
        'eclectus_schedule_attempts_total{profile="eclectus",result="scheduled"} 3.0',
        'eclectus_queue_incoming_pods_total{event="PodAdd",queue="active"} 5.0',
        "eclectus_pod_scheduled_after_flush_total 0.0",
    ):
        assert line in text.splitlines()
