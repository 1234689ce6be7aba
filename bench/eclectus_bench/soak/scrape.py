"""What a soak reads of the scheduler's metrics. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from prometheus_client.parser import text_string_to_metric_families

STEPS = "eclectus_scheduling_algorithm_duration_seconds_bucket"
LONGEST_STEP = "eclectus_longest_step_seconds"
UNTIL_BOUND, BIND = (
    "eclectus_pod_scheduling_sli_duration_seconds",
    "eclectus_scheduling_attempt_duration_seconds",
)
DEFECTS = (
    "eclectus_policy_faults_total",
    "eclectus_malformed_objects_total",
    "eclectus_pod_scheduled_after_flush_total",
)
"""Counters that stay at 0 where nothing is wrong."""
Steps = Mapping[float, float]
"""How many steps took at most so many seconds, as a histogram of Prometheus has them."""


@dataclass(frozen=True)
class Scrape:
    """One answer of /metrics. `values`: samples, summed over their labels."""

    values: Mapping[str, float]
    steps: Steps

    def times(self) -> dict[str, float]:
        """Sum and count of pods' times until bound, and of their binds: seconds since the process began."""
        names = (f"{name}_{part}" for name in (UNTIL_BOUND, BIND) for part in ("sum", "count"))
        return {name: self.values.get(name, 0.0) for name in names}

    def defects(self) -> dict[str, int]:
        """The counters of DEFECTS that are not 0."""
        return {name: int(self.values[name]) for name in DEFECTS if self.values.get(name)}


def parse(text: str) -> Scrape:
    """The samples of a page of metrics."""
    values, steps = defaultdict[str, float](float), dict[float, float]()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values[sample.name] += sample.value
            if sample.name == STEPS:
                steps[float(sample.labels["le"])] = sample.value
    return Scrape(values, steps)


def mean_seconds(name: str, spans: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]) -> float:
    """The mean of a histogram of `times` between the first and the last scrape of some spans, seconds.

    0 without any.
    """
    total, count = (
        sum(after[f"{name}_{part}"] - before[f"{name}_{part}"] for before, after in spans)
        for part in ("sum", "count")
    )
    return total / count if count else 0.0


def step_percentile(before: Steps, after: Steps, share: float) -> float:
    """Seconds below which this share of the steps between two scrapes took.

    Interpolated within its bucket, as PromQL's histogram_quantile does: buckets double in size, so a bound
    alone would be up to twice too much. 0 without any step, inf beyond the largest bound.
    """
    counts = {bound: after[bound] - before.get(bound, 0.0) for bound in sorted(after)}
    wanted = share * counts.get(inf, 0.0)
    if not wanted:
        return 0.0
    lower, below = 0.0, 0.0
    for bound, count in counts.items():
        if count >= wanted:
            break
        lower, below = bound, count
    return lower + (bound - lower) * (wanted - below) / (count - below)
