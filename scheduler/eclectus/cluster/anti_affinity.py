"""Residents' required anti-affinity: whom they keep away, and from which rows.

Kubernetes calls it the symmetry of anti-affinity: a pod must not land in the topology domain of a
resident that has said "not beside pods like this one". Such terms are few and shared by all replicas
of a workload, so they are kept by kind; a waiting pod carries the kinds it matches in its spec
(`Spec.shunned`), and pods that match none (nearly all) cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection

from eclectus.model.objects import AntiAffinityTerm, Pairs, Requirement


class AntiAffinityTerms:
    """Every kind of guard that some resident holds, and on which rows."""

    def __init__(self) -> None:
        self._rows: dict[AntiAffinityTerm, dict[int, int]] = {}  # guard -> row -> residents
        self._terms_by_namespace: dict[
            str | None, dict[AntiAffinityTerm, None]
        ] = {}  # namespace, or None for all -> its guards
        self.generation = 0  # grows when a kind appears: whoever matched pods before must match them again

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, guard: AntiAffinityTerm) -> Collection[int]:
        """Rows of the residents that hold this guard."""
        return self._rows.get(guard, {}).keys()

    def hold(self, guard: AntiAffinityTerm, row: int) -> None:
        """A resident on this row holds the guard."""
        if guard not in self._rows:
            self._rows[guard] = {}
            self.generation += 1
            for namespace in guard.namespaces or (None,):
                self._terms_by_namespace.setdefault(namespace, {})[guard] = None
        holders = self._rows[guard]
        holders[row] = holders.get(row, 0) + 1

    def release(self, guard: AntiAffinityTerm, row: int) -> None:
        """One resident less holds it there."""
        holders = self._rows[guard]
        holders[row] -= 1
        if not holders[row]:
            del holders[row]
        if not holders:
            del self._rows[guard]
            self._forget(guard)

    def matching(self, namespace: str, labels: Pairs) -> tuple[AntiAffinityTerm, ...]:
        """The kinds that keep a pod of this namespace and these labels away, in a fixed order."""
        if not self._terms_by_namespace:
            return ()
        watching = {**self._terms_by_namespace.get(namespace, {}), **self._terms_by_namespace.get(None, {})}
        worn = dict(labels)
        return tuple(sorted((guard for guard in watching if _matches(guard, worn)), key=repr))

    def _forget(self, guard: AntiAffinityTerm) -> None:
        for namespace in guard.namespaces or (None,):
            del self._terms_by_namespace[namespace][guard]
            if not self._terms_by_namespace[namespace]:
                del self._terms_by_namespace[namespace]


def _matches(guard: AntiAffinityTerm, labels: dict[str, str]) -> bool:
    return all(_holds(requirement, labels.get(requirement.key)) for requirement in guard.selector)


def _holds(requirement: Requirement, value: str | None) -> bool:
    match requirement.op:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            raise AssertionError(f"pod labels are never compared as numbers: {requirement}")
