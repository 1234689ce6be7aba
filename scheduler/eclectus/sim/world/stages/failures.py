"""Failures of tasks at random: which attempt fails, and after which part of its work."""

from __future__ import annotations

from eclectus.sim.base.random_draws import stream


class Failures:
    """Every attempt fails with the same probability, at a uniform point of its work.

    What happens to an attempt depends on its uid and the seed alone, so that all profiles meet the same
    failures, whatever the order in which they start tasks.
    """

    def __init__(self, probability: float, seed: int) -> None:
        self._probability, self._seed = probability, seed

    def share_done(self, uid: str) -> float | None:
        """The share of its work after which this attempt fails, 0..1; None if it does not."""
        fails, share = stream(self._seed, f"failure of {uid}").random(2).tolist()
        return share if fails < self._probability else None
