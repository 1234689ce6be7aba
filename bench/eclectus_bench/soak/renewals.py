"""How regularly the Leases of scheduler and operator are renewed, by the times that they write."""

from collections import defaultdict
from itertools import pairwise

import msgspec

from eclectus_e2e.testbed.chart import NAMESPACE
from eclectus_e2e.testbed.kubelet.api import Api
from eclectus_e2e.testbed.kubelet.objects import Metadata, unix_seconds

PATH = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    renew_time: str = ""


class _Lease(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _LeaseSpec = _LeaseSpec()


class Renewals:
    """The renewals of each Lease of the release's namespace since this began to follow them."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = defaultdict(list)  # seconds since the epoch

    async def follow(self, api: Api) -> None:
        """Watch the Leases until cancelled."""
        async for change in api.changes(PATH, _Lease):
            for lease in change.items if change.kind != "deleted" else ():
                if lease.spec.renew_time:
                    self.record(lease.metadata.name, unix_seconds(lease.spec.renew_time))

    def record(self, name: str, at: float) -> None:
        """The Lease says that it was renewed at this time; no effect if that is known."""
        if not self._times[name] or self._times[name][-1] != at:
            self._times[name].append(at)

    def counts(self) -> dict[str, int]:
        """Renewals by name of the Lease; what it said at first is none."""
        return {name: len(times) - 1 for name, times in self._times.items()}

    def longest_gaps(self, now: float) -> dict[str, float]:
        """By name of the Lease the longest time without a renewal, in seconds, up to `now`."""
        return {
            name: max(later - earlier for earlier, later in pairwise([*times, now]))
            for name, times in self._times.items()
        }
