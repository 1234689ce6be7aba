"""PersistentVolumeClaims as the watch last showed them, for binds that wait until claims are bound."""

from __future__ import annotations

import asyncio

from msgspec import Struct


class ClaimState(Struct, frozen=True, gc=False):
    """What a bind that waits needs to know of a claim."""

    uid: str
    volume: str  # to which it is bound; empty while it is not
    selected_node: str


class ClaimStates:
    """States by namespace/name."""

    def __init__(self) -> None:
        self._states: dict[str, ClaimState] = {}
        self._changed: dict[str, asyncio.Event] = {}  # of claims that a bind waits for

    def get(self, key: str) -> ClaimState | None:
        """The state; None if there is no such claim."""
        return self._states.get(key)

    def set(self, key: str, state: ClaimState) -> None:
        """The watch has shown the claim."""
        self._states[key] = state
        self._report(key)

    def drop(self, key: str) -> None:
        """The claim is gone."""
        self._states.pop(key, None)
        self._report(key)

    async def changed(self, key: str, seconds: float) -> None:
        """Return when the watch has shown the claim again, or after so many seconds."""
        event = self._changed.setdefault(key, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return

    def _report(self, key: str) -> None:
        event = self._changed.pop(key, None)
        if event is not None:
            event.set()
