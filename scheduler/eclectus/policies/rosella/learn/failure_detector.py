"""Failure detector: which nodes count as dead, because their tasks are overdue or too slow."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from eclectus.maths.products import sum_of_products
from eclectus.maths.window import cut_margin, cut_off_rate, error_aimed, unlikelihood
from eclectus.policies.rosella.learn.liveness import Liveness
from eclectus.policies.rosella.learn.load import Load
from eclectus.policies.rosella.learn.rates import Rates


class FailureDetector:
    """`certainty` is x and `spare_share` c0 of maths/window.py.

    `reset_after`: seconds after which a dead node on which nothing runs counts as unknown again.
    """

    def __init__(
        self,
        rates: Rates,
        watch: Liveness,
        load: Load,
        *,
        certainty: float,
        spare_share: float,
        reset_after: float,
    ) -> None:
        self._rates, self._liveness, self._load = rates, watch, load
        self._certainty, self._spare_share, self._reset_after = certainty, spare_share, reset_after

    def check(self, now: float, present: Collection[int]) -> list[int]:
        """Check all nodes and measure their total capacity; returns the rows that died or were reset."""
        watch, matrix, load = self._liveness, self._rates.matrix, self._load.ratio(now)
        rows, nodes = np.array(sorted(present), dtype=np.intp), len(present)
        if not nodes:
            return []
        share = watch.silence_shares(now, matrix, self._rates.index, unlikelihood(nodes, self._certainty))
        speed, slots = matrix.factor[rows], watch.slots(now)[rows]
        mean = float(sum_of_products(speed, slots)) / slots.sum() if slots.any() else float(speed.mean())
        limit = cut_off_rate(mean * nodes, load, nodes, self._spare_share)
        margin = cut_margin(matrix.samples[rows], nodes, self._certainty, error_aimed(load))
        is_silent = speed * share[rows] < limit
        is_slow = (speed * (1.0 + margin) < limit) & ~watch.is_dead_or_on_trial(rows)
        changed = watch.mark_dead(rows[is_silent | is_slow], now) + self._reset_idle(now)
        watch.apply_shares(share, nodes)
        if self._load.measured_capacity.is_due(now) and (size := self._rates.mean_size()) is not None:
            self._load.measured_capacity.add(
                float(sum_of_products(speed * watch.share[rows], slots)) / size, now
            )
        return changed

    def _reset_idle(self, now: float) -> list[int]:
        """Reset dead nodes on which nothing has run for long."""
        rows = self._liveness.idle_dead_rows(now, self._reset_after)
        for row in rows:
            self._liveness.reset(row)
            self._rates.clear(row)
        return rows
