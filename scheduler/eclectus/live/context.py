"""What every part of the shell needs to work."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from eclectus.kubeclient.client import ApiClient
from eclectus.live.metrics import Metrics


@dataclass(frozen=True)
class Means:
    """The API server, the place to count things, and chance for waits that must not fall into step."""

    client: ApiClient
    metrics: Metrics = field(default_factory=Metrics)
    rng: Random = field(default_factory=Random)
