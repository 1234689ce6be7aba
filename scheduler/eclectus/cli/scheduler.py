"""`eclectus scheduler`: the scheduler itself."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from eclectus import __version__
from eclectus.config import Configuration, load

if TYPE_CHECKING:
    from eclectus.live.loop import StepObserver

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--config", required=True, type=FILE, help="SchedulerConfiguration file (see check-config).")
@click.option(
    "--kubeconfig", type=FILE, help="Kubeconfig; without it the pod's ServiceAccount, else $KUBECONFIG."
)
@click.option("--context", help="Context of the kubeconfig; its current one by default.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="TAPE",
    help="Write every event and decision to TAPE for `eclectus replay`; .gz compresses it.",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "-v",
    "--verbosity",
    type=click.IntRange(0, 2),
    default=1,
    show_default=True,
    help="0 warnings, 1 what happens to pods, 2 everything.",
)
def scheduler(  # noqa: PLR0917 — one argument an option, handed over by name
    config: Path,
    kubeconfig: Path | None,
    context: str | None,
    record: Path | None,
    log_format: Literal["text", "json"],
    verbosity: int,
) -> None:
    """Schedule the pods whose schedulerName the configuration names, until told to stop.

    SIGTERM lets what is decided go out, gives the Lease back and exits with 0. A lost Lease exits
    with 1, to be started anew as a standby.
    """
    from eclectus.kubeclient import credentials
    from eclectus.live import logs, scheduler

    logs.configure(log_format, verbosity)
    configuration = load(config)
    access = credentials.load(kubeconfig, context)
    ours = frozenset(profile.scheduler_name for profile in configuration.profiles)
    with ExitStack() as stack:
        witnesses = _observers(stack, configuration, record)
        work = scheduler.run(
            configuration.engine(), ours.__contains__, configuration.process, access, witnesses
        )
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            code = runner.run(work)
    sys.exit(code)


def _observers(stack: ExitStack, configuration: Configuration, record: Path | None) -> list[StepObserver]:
    from eclectus.tape import Header, TapeWriter

    if record is None:
        return []
    header = Header(__version__, configuration.text, configuration.seed)
    return [stack.enter_context(TapeWriter(record, header)).step]


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: a fifth less work per request."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
