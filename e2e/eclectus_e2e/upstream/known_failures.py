"""The specs that do not pass here, by scheduler: part of the name -> why.

With kube-scheduler only what the fake nodes cannot do fails. A spec that always fails and yet passes is an
error, so that the table stays true.
"""

from dataclasses import dataclass

from eclectus.model.objects import UNSUPPORTED
from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER


@dataclass(frozen=True)
class KnownFailure:
    """Why a spec fails; without `always` it may pass by chance."""

    why: str
    always: bool = True


def _ignored(feature: str) -> KnownFailure:
    """The spec's pod uses a feature of IGNORED; the pod may be placed as it prefers all the same."""
    return KnownFailure(f"needs {feature}, {UNSUPPORTED}", always=False)


_SOFT_SPREAD = "topology spread with ScheduleAnyway"

KNOWN_FAILURES: dict[str, dict[str, KnownFailure]] = {
    KUBE_SCHEDULER: {},
    ECLECTUS: {
        "PodTopologySpread Scoring": _ignored(_SOFT_SPREAD),
        "Multi-AZ Clusters": _ignored(_SOFT_SPREAD),  # by default, for pods of Services and controllers
        "don't match the PodAntiAffinity terms": _ignored("preferred pod anti-affinity"),
    },
}
