"""The free PersistentVolumes of one StorageClass, in groups of equal ones, with the rows that reach each.

A pair is a group and a row that reaches it. Pairs are sorted by size, so the first pair of a row whose group
matches is the smallest volume that a claim can get there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.rules.rule import Mask
from eclectus.model.objects import Term, UnboundClaim
from eclectus.model.selectors import selects
from eclectus.model.volumes import Volume


class Candidates:
    """`names` [groups] of volumes; `counts` [groups], how many; `rows` and `groups` [pairs]."""

    def __init__(self, volumes: Iterable[Volume], rows_of: Callable[[tuple[Term, ...] | None], Rows]) -> None:
        """`rows_of` returns the rows on which at least one of these terms holds."""
        alike: dict[tuple[object, ...], list[Volume]] = {}
        for volume in volumes:
            alike.setdefault(_kind(volume), []).append(volume)
        ordered = sorted(alike.values(), key=lambda group: group[0].size)
        self._samples = [group[0] for group in ordered]
        self.names = [[volume.name for volume in group] for group in ordered]
        self.counts = np.array([len(group) for group in ordered], dtype=np.int64)
        rows = [rows_of(volume.affinity) for volume in self._samples]
        self.rows = np.concatenate(rows) if rows else np.zeros(0, dtype=np.intp)
        self.groups = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
        self._matching: dict[UnboundClaim, Mask] = {}

    def matching(self, claim: UnboundClaim) -> Mask:
        """Which groups a claim can get, shape [groups]."""
        found = self._matching.get(claim)
        if found is None:
            matches = (fits_claim(each, claim) and _is_selected(each, claim) for each in self._samples)
            found = self._matching[claim] = np.fromiter(matches, dtype=bool, count=len(self._samples))
        return found


def fits_claim(volume: Volume, claim: UnboundClaim) -> bool:
    """Whether a volume is large enough, of the mode and the attributes that the claim asks for."""
    return (
        volume.size >= claim.size
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.deleting
    )


def _is_selected(volume: Volume, claim: UnboundClaim) -> bool:
    """What is asked of a volume that is not reserved for the claim, besides."""
    if claim.selector is not None and not selects(claim.selector, dict(volume.labels)):
        return False
    return set(claim.access_modes) <= set(volume.access_modes)


def _kind(volume: Volume) -> tuple[object, ...]:
    """Volumes of one kind can replace each other."""
    return (
        volume.size,
        volume.access_modes,
        volume.volume_mode,
        volume.attributes_class,
        volume.labels,
        volume.affinity,
    )
