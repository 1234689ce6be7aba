"""The end of a leader: it sends what is decided, lets end what is under way, and gives the Lease back.

The next leader places pods by a list that it makes once the Lease is free. A bind that is committed later is
missing from that list, and two pods may get the same room. So for as long as a request may last nothing is
sent before the Lease is given back; where a write has not ended by then, the Lease is kept and expires.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from eclectus.kubeclient.leadership import Leadership
from eclectus.live.write.binder import MARGIN_SECONDS
from eclectus.live.write.outbox import Outbox

DRAIN_SECONDS = 10.0  # for sending what is decided; the kubelet grants 30 s by default for all of this

_log = logging.getLogger(__name__)


async def release(
    loop_end: Awaitable[None], outbox: Outbox, leadership: Leadership, request_seconds: float
) -> None:
    """End the writes of a loop that has been stopped, and give the Lease back if they have ended.

    `loop_end` is cancelled if it takes too long; `request_seconds` is the time limit of a request.
    """
    # 1. What is decided is sent.
    if not await _ends_within(DRAIN_SECONDS, _drained(loop_end, outbox)):
        problem = "stopped after %g s with requests unsent; the next leader decides for those pods"
        _log.warning(problem, DRAIN_SECONDS)
    # 2. Nothing more is sent. A bind under way ends within the time limit and the margin, and the read that
    #    says how it has ended takes another moment.
    leadership.stop_writing()
    if not await _ends_within(request_seconds + 2 * MARGIN_SECONDS, outbox.wait_until_binds_ended()):
        _log.warning("keeping the lease until it expires: of some binds or evictions the end is not known")
        return
    # 3. All binds are in the next leader's list.
    await leadership.resign()


async def _drained(loop_end: Awaitable[None], outbox: Outbox) -> None:
    await loop_end
    await outbox.wait_until_empty()


async def _ends_within(seconds: float, work: Awaitable[None]) -> bool:
    """Whether the work ends in this time; it is cancelled if not."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True
