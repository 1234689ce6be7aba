"""The specs that do not pass here, by scheduler: part of the name -> why.

With kube-scheduler only what the fake nodes cannot do fails. A spec that always fails and yet passes is an
error, so that the table stays true.
"""

from dataclasses import dataclass

from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER


@dataclass(frozen=True)
class KnownFailure:
    """Why a spec fails; without `always` it may pass by chance."""

    why: str
    always: bool = True


KNOWN_FAILURES: dict[str, dict[str, KnownFailure]] = {KUBE_SCHEDULER: {}, ECLECTUS: {}}
