"""Metrics of scheduling decisions: latencies, policy faults and leadership."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from eclectus.live.metrics.families import counter, gauge, histogram
from eclectus.live.metrics.steps import StepDurations


class SchedulingMetrics:
    """Attempts to schedule, latencies of pods, and steps of the engine."""

    def __init__(self, registry: CollectorRegistry) -> None:
        buckets = [0.001 * 2**k for k in range(15)]
        self.attempt_seconds = histogram("scheduling_attempt_duration_seconds", registry, buckets)
        buckets = [0.01 * 2**k for k in range(20)]
        self.sli_seconds = histogram("pod_scheduling_sli_duration_seconds", registry, buckets)
        self.steps = StepDurations(registry)
        self.faults = counter("policy_faults", registry)
        self.ignored_preferences = counter("ignored_preferences", registry)
        self.relaxed_preferences = counter("relaxed_preferences", registry)
        self.leader = gauge("leader", registry)
