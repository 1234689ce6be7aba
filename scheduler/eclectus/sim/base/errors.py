"""Errors of a simulation, by what the caller can do about them.

EclectusError
├── InvariantError  a defect of the simulator or the engine: the results of this run are invalid
└── StuckError      an error in the scenario or the policy: tasks wait and no event is left
"""

from __future__ import annotations

from eclectus.model.errors import EclectusError


class InvariantError(EclectusError):
    """An invariant of the simulation does not hold."""


class StuckError(EclectusError):
    """Tasks wait and no further event can start them."""
