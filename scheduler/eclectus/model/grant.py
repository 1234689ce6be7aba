"""What a node gives a pod that is placed there, beside room: chosen with the node, and given back with it."""

from __future__ import annotations

from msgspec import Struct


class Grant(Struct, frozen=True, gc=False, omit_defaults=True):
    """Which devices of its node a pod gets; none for a pod that requests none, or before they are chosen."""

    devices: tuple[int, ...] = ()  # indices of them: whole ones first, then the one that it shares


NO_GRANT = Grant()
