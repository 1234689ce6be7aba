"""Shortest remaining processing time (SRPT), with a limit on how often a job may be overtaken.

The node queues of Eagle: Delgado, Didona, Dinu, Zwaenepoel, "Job-aware Scheduling in Eagle: Divide and Stick
to Your Probes", SoCC 2016. Of the reservations in a node queue the job with the least remaining work (tasks
not started, times their estimate) goes first, within the limits of `policies/shared.py`.

Departures:
- a long task overtakes none. In the paper it competes by the remaining work of its whole job, which a node
  queue does not know of tasks that were placed one by one. So no short task waits behind a long task that
  arrived later.
- a task without an estimate is taken to need the learned mean time of its workload on that node.
"""

from dataclasses import dataclass

from eclectus.framework import Reservation, View
from eclectus.policies.shared import OvertakingLine, Rank


@dataclass(eq=False)
class ShortestRemaining(OvertakingLine):
    """Shortest remaining work first, with a limit on overtaking (SRPT of Eagle)."""

    def rank(self, view: View, reservation: Reservation, remaining_seconds: float) -> Rank:
        """By remaining work alone."""
        return (remaining_seconds,)
