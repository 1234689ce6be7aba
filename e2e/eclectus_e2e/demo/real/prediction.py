"""How long probes should take to learn changed quotas, from settings and the pace of probes. Pure.

An alarm takes D samples of a node that became four times as fast or slow (demo/alarm.py). The probe under
way when the quota changes is of both, and D more begin after it. Probes of a node come one after another, and
the sooner the faster it is; so it comes by them at the pace of the node that had its quota before, T seconds
a probe while the first were learned:

    recovery = max over nodes of T (1 + D)
"""

from collections.abc import Mapping, Sequence

from eclectus.policies.rosella import RosellaLearn
from eclectus_e2e.demo.alarm import samples_until_alarm
from eclectus_e2e.demo.real.observations import QuotaInterval, RatesAt


def predicted_seconds(
    instants: Sequence[RatesAt], first: QuotaInterval, changed: Mapping[str, float]
) -> float | None:
    """Until the changed quotas are learned; None where the first never were."""
    if first.learned is None:
        return None
    until = first.learned.at
    paces = {}
    for node, quota in first.quotas.items():
        seen = [(one.samples(node), one.at) for one in instants if first.since < one.at <= until]
        most = max(samples for samples, _ in seen)
        paces[quota] = (next(at for samples, at in seen if samples == most) - first.since) / most
    probes = 1 + samples_until_alarm(RosellaLearn(), kinds=1)
    return max(paces[quota] for quota in changed.values()) * probes
