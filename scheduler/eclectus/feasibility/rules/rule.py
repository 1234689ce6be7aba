"""What a rule is: a filter that says of each node whether it can run a pod with a given spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Spec

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rule:
    """One filter of kube-scheduler.

    `holds(cluster, spec, rows)` is true for the rows that pass, shape [len(rows)]. It is called only
    if `applies(spec)`, so that a rule costs nothing for pods that do not use its feature.
    """

    plugin: str  # name of kube-scheduler's plugin
    reason: str  # kube-scheduler's words for its refusal, which autoscalers parse
    applies: Callable[[Spec], bool]
    holds: Callable[[Cluster, Spec, Rows], Mask]
    after_room: bool = False  # whether kube-scheduler runs it after NodeResourcesFit: matters for messages
