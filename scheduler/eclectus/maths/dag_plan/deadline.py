"""The time by which a job is to end: kept from plan to plan, so that lending does not postpone it.

A plan that is made anew from the present ignores what was lost before. So the deadline is absolute, and moves
to a later time only if the job cannot help it: its share has shrunk, or work of it was lost.

It also counts as due what was gained: a job that has used room of others could now end earlier in its share,
but it is not entitled to that, and the time is worth more to others. So the deadline moves to an earlier time
only as the share has grown: with a share of twice the size half of the time is left. What has grown is the
dominant share: how much the job needs of other resources changes with its stages, without a larger claim. The
project's own rules; the paper's theorem 3.1 speaks of one fixed plan.
"""

from __future__ import annotations

from math import inf

from msgspec import Struct

NEGLIGIBLE = 0.01  # of the time that is left: run times are known to no more than that


class Deadline(Struct, frozen=True, gc=False):
    """A job's deadline, and by how much it was moved to a later time."""

    at: float = inf  # seconds since the epoch; inf: none yet
    slips: int = 0
    slip_seconds: float = 0.0

    def replanned(
        self, now: float, finish_at: float, *, growth: float = inf, excused: bool = False
    ) -> Deadline:
        """After a new plan that ends at `finish_at`; times are seconds since the epoch.

        `growth`: the dominant share over that of the last plan; inf if there is none, and the deadline is
        then at most `finish_at`. `excused`: since the last plan the share has shrunk or work was lost. Then a
        deadline before `finish_at` slips, if by more than the times are known.
        """
        if finish_at <= self.at:
            left = 0.0 if self.at == inf else (self.at - now) / max(growth, 1.0)
            return Deadline(max(finish_at, now + left), self.slips, self.slip_seconds)
        if not excused or finish_at - self.at <= NEGLIGIBLE * (finish_at - now):
            return self
        return Deadline(finish_at, self.slips + 1, self.slip_seconds + finish_at - self.at)
