"""Volcano's Queues as Pools: the greater of deserved and guarantee is the minimum, capability the maximum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eclectus.config.queues.reading import KINDS, Draft, Findings, Object, shares

GROUP = "scheduling.volcano.sh"
ROOT = "root"
_SHARED = (
    "what a pool does not need is lent to others, also what is guaranteed; see preemption.minShareSeconds"
)
_TAKEN = "is the minimum; preemption.minShareSeconds says after how long it is taken back, by default never"


class Volcano:
    """Reads Queues one by one, then gives the Pools of all."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self._drafts: dict[str, Draft] = {}

    def read(self, each: Object) -> None:
        """Take an object of Volcano's group."""
        if each.kind != "Queue":
            self._found.note(each.path, "Pools have nothing like this kind")
            return
        draft = self._draft(each)
        if each.name in self._drafts:
            self._found.problems.add(each.path, "there are two of this name")
        if each.name == ROOT:
            for name in draft.spec.keys() - {"policy", "namespaces"}:
                self._found.note(f"{each.path}: {name}", "the root is the cluster, which no Pool limits")
            return
        self._drafts[each.name] = draft

    def drafts(self) -> Iterator[Draft]:
        """The Pools."""
        yield from self._drafts.values()

    def _draft(self, each: Object) -> Draft:
        fields, state = each.below("spec"), each.below("status").text("state")
        parent = fields.text("parent")
        spec: dict[str, Any] = {"policy": "fifo", "namespaces": {"selector": {}}}
        if (weight := fields.whole("weight", 0, 2**31 - 1)) is not None and weight != 1:
            spec["weight"] = max(weight, 1)  # 0 is Volcano's 1
        guarantee = fields.below("guarantee")
        guaranteed, deserved = guarantee.amounts("resource"), fields.amounts("deserved")
        guarantee.close()
        if guaranteed:
            self._found.note(guarantee.at("resource"), _SHARED)
        if deserved:
            self._found.note(fields.at("deserved"), _TAKEN)
        names = deserved.keys() | guaranteed.keys()
        least = {name: max(deserved.get(name, 0), guaranteed.get(name, 0)) for name in sorted(names)}
        most = fields.amounts("capability")
        stated = {"minShare": least, "maxShare": most}
        spec |= {name: shares(amounts) for name, amounts in stated.items() if amounts}
        if not fields.flag("reclaimable", default=True):
            spec["preemption"] = {"allowFrom": False}
        if state in ("Closed", "Closing"):
            spec["suspend"] = True
        if fields.choice("dequeueStrategy", ("traverse", "fifo")) == "fifo":
            reason = "jobs start by age, but an older one that finds no room stops no younger one"
            self._found.note(fields.at("dequeueStrategy"), reason)
        if fields.whole("priority", 0, 2**31 - 1):
            self._found.note(fields.at("priority"), "pools have no priorities; weight and minShare say it")
        fields.note("affinity", KINDS)
        fields.note("dra", "pods with resource claims are refused; leave them to kube-scheduler")
        fields.note("extendClusters", "a Pool is of one cluster")
        fields.note("type", "Pools have no types")
        fields.close()
        each.end()
        above = "" if parent in ("", ROOT) else f"Queue {parent}"
        names_of = (each.name, f"{each.name}-queue")
        return Draft(f"Queue {each.name}", names_of, each.path, spec, above, may_be_default=not above)
