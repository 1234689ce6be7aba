"""Metrics of scheduling decisions: latencies, policy faults and leadership."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

PROFILE = ["result", "profile"]


class SchedulingMetrics:
    """Attempts to schedule, latencies of pods, and steps of the engine."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.attempt_seconds = Histogram(
            "eclectus_scheduling_attempt_duration_seconds",
            "Time from the decision to the API server's answer to the bind.",
            PROFILE,
            buckets=[0.001 * 2**k for k in range(15)],
            registry=registry,
        )
        self.sli_seconds = Histogram(
            "eclectus_pod_scheduling_sli_duration_seconds",
            "Time from the first observation of a pod without scheduling gates until it is bound.",
            ["attempts"],
            buckets=[0.01 * 2**k for k in range(20)],
            registry=registry,
        )
        self.step_seconds = Histogram(
            "eclectus_scheduling_algorithm_duration_seconds",
            "Duration of one step of the engine, which may place many pods.",
            buckets=[0.0001 * 2**k for k in range(14)],
            registry=registry,
        )
        self.faults = Counter(
            "eclectus_policy_faults_total",
            "Invalid actions of a policy, which the engine has refused.",
            ["policy"],
            registry=registry,
        )
        self.leader = Gauge(
            "eclectus_leader",
            "1 while this replica holds the Lease and schedules, otherwise 0.",
            registry=registry,
        )
