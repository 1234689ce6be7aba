"""Asking again a scheduler that is asked too much, when it says, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar

import click

from eclectus.kubeclient.api_errors import NotDoneError

PATIENCE_SECONDS = 60.0  # that one question waits in all; a namespace has its whole share again by then
LEAST_SECONDS = 1.0  # between two requests, whatever the answer says

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


async def patiently(ask: Callable[[], Awaitable[T]], sleep: Sleep = asyncio.sleep) -> T:
    """The answer to a question; stderr says for how long is waited. Raises what `ask` raises."""
    left = PATIENCE_SECONDS
    while True:
        try:
            return await ask()
        except NotDoneError as error:
            seconds = max(error.retry_after or 0.0, LEAST_SECONDS)
            if error.status != HTTPStatus.TOO_MANY_REQUESTS or seconds > left:
                raise
            click.echo(f"{error.reason.partition(': ask again')[0]}; asking again in {seconds:g} s", err=True)
        await sleep(seconds)
        left -= seconds
