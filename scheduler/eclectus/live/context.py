"""What every part of the scheduler process shares."""

from dataclasses import dataclass, field
from random import Random

from eclectus.kubeclient.client import ApiClient
from eclectus.live.process_metrics import Metrics


@dataclass(frozen=True)
class Context:
    """The client of the API server, the metrics, and the random source for back-off jitter."""

    client: ApiClient
    metrics: Metrics = field(default_factory=Metrics)
    rng: Random = field(default_factory=Random)
