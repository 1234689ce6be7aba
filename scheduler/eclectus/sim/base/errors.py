"""What can go wrong in a simulated world, by what the caller does next.

EclectusError
├── InvariantError  find the defect: an invariant does not hold, so no number of this run counts
└── StuckError      mend the scenario or the policy: tasks wait and nothing will ever happen again
"""

from __future__ import annotations

from eclectus.model.errors import EclectusError


class InvariantError(EclectusError):
    """An invariant of every possible world does not hold."""


class StuckError(EclectusError):
    """Tasks wait for ever."""
