"""Pods that request a feature that no rule implements: refused on all nodes, naming the feature."""

from __future__ import annotations

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import UNSUPPORTED, Spec


def _holds(_cluster: Cluster, _spec: Spec, rows: Rows) -> Mask:
    return np.zeros(len(rows), dtype=bool)


def message(spec: Spec) -> str:
    """The refusal, which names the features; spec.unsupported must not be empty."""
    *others, last = spec.unsupported
    features = f"{', '.join(others)} and {last}" if others else last
    return f"pod asks for {features}, {UNSUPPORTED}"


RULE = Rule(
    plugin="Unsupported",  # Eclectus' own: kube-scheduler has a plugin for each of these features
    reason="pod asks for features that Eclectus does not support yet",
    applies=lambda spec: bool(spec.unsupported),
    holds=_holds,
    condition="supported features",
)
