"""A second event loop, on a thread of its own, for what must go on however long the first one is busy."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


async def on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Let another loop do the work, and return what it returns. It is cancelled with its caller."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


@asynccontextmanager
async def side_loop(name: str) -> AsyncIterator[asyncio.AbstractEventLoop]:
    """Run a loop on a thread of this name for the block; what it still does at the end is cancelled."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        ended = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), ended))
        await ended.wait()

    thread = Thread(target=lambda: asyncio.run(run()), name=name, daemon=True)
    thread.start()
    loop, ended = await asyncio.wrap_future(started)
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(ended.set)
        await asyncio.to_thread(thread.join)


@asynccontextmanager
async def entered(
    loop: asyncio.AbstractEventLoop, manager: AbstractAsyncContextManager[T]
) -> AsyncIterator[T]:
    """Enter and leave a context manager on another loop: a connection belongs to the loop that made it."""
    value = await on(loop, manager.__aenter__())
    try:
        yield value
    finally:
        await on(loop, manager.__aexit__(None, None, None))
