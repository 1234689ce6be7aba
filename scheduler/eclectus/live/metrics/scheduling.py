"""What is counted of decisions: how long they took, and what went wrong with them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

PROFILE = ["result", "profile"]


class Deciding:
    """Attempts, waits and steps."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.attempt_seconds = Histogram(
            "eclectus_scheduling_attempt_duration_seconds",
            "From the decision to the API server's answer to the bind.",
            PROFILE,
            buckets=[0.001 * 2**k for k in range(15)],
            registry=registry,
        )
        self.sli_seconds = Histogram(
            "eclectus_pod_scheduling_sli_duration_seconds",
            "From first seeing a pod without gates to its bind.",
            ["attempts"],
            buckets=[0.01 * 2**k for k in range(20)],
            registry=registry,
        )
        self.step_seconds = Histogram(
            "eclectus_scheduling_algorithm_duration_seconds",
            "One step of the engine, however many pods it placed.",
            buckets=[0.0001 * 2**k for k in range(14)],
            registry=registry,
        )
        self.faults = Counter(
            "eclectus_policy_faults_total",
            "Actions a policy must not take and the engine refused.",
            ["policy"],
            registry=registry,
        )
        self.leader = Gauge("eclectus_leader", "1 while this replica decides.", registry=registry)
