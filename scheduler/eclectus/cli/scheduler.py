"""`eclectus scheduler`: run the scheduler."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from eclectus.config.configuration import Configuration
    from eclectus.kubeclient.serving.pages import PageParts
    from eclectus.live.loop import StepObserver
    from eclectus.tape import Header

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
# What imports and lists create lives long. By default, what is known of 5,000 nodes would be traversed again
# and again by the garbage collector, which stops everything else for up to 0.1 s at a time.
GC_THRESHOLD = (100_000, 50, 50)

_log = logging.getLogger(__name__)


@click.command()
@click.option(
    "--config", required=True, type=FILE, help="SchedulerConfiguration file; `check-config` validates it."
)
@click.option(
    "--kubeconfig",
    type=FILE,
    help="Kubeconfig file. By default the pod's ServiceAccount, or outside of a pod $KUBECONFIG.",
)
@click.option("--context", help="Context of the kubeconfig. By default its current context.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="TAPE",
    help="Record all events and decisions in TAPE, for `eclectus replay`; compressed if it ends in .gz. One "
    "that exists is kept as previous-TAPE.",
)
@click.option(
    "--record-most",
    type=click.IntRange(min=1),
    metavar="MIB",
    help="End the recording, not the scheduler, when TAPE has so many mebibytes. By default it ends when the "
    "disk is full.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the log on stderr.",
)
@click.option(
    "-v",
    "--verbosity",
    type=click.IntRange(0, 2),
    default=1,
    show_default=True,
    help="0: warnings and errors. 1: also one line for each bind and each reason why a pod waits. "
    "2: also each pod's way to its bind: received, considered (how many nodes, by which policy), sent.",
)
def scheduler(  # noqa: PLR0917 — one argument per option, passed by name
    config: Path,
    kubeconfig: Path | None,
    context: str | None,
    record: Path | None,
    record_most: int | None,
    log_format: Literal["text", "json"],
    verbosity: int,
) -> None:
    """Schedule the pods whose schedulerName is that of a profile in the configuration.

    On SIGTERM the scheduler sends the binds it has decided, gives the Lease back when all have ended, and
    exits with 0. When another replica has taken the Lease it exits with 1, to be restarted as a standby.
    """
    # Before the imports, of whose time it would take an eighth.
    gc.set_threshold(*GC_THRESHOLD)
    from eclectus.config.configuration import RunningConfiguration, configz, load
    from eclectus.kubeclient import credentials
    from eclectus.live import logs, scheduler_process

    logs.configure(log_format, verbosity)
    configuration = load(config)
    running = RunningConfiguration(config, configuration)
    for warning in configuration.warnings():
        _log.warning("%s: %s", config, warning)
    access = credentials.load(kubeconfig, context)
    names = frozenset(profile.scheduler_name for profile in configuration.profiles)
    with ExitStack() as stack:
        observers = _observers(
            stack, configuration, record, inf if record_most is None else record_most << 20
        )
        pages = {
            "/configz": lambda _: [configz(running.now)],
            "/flagz": _flagz(click.get_current_context().params),
        }
        work = scheduler_process.run(
            configuration.engine(),
            names,
            configuration.process,
            access,
            observers,
            pages=pages,
            header=partial(_header, configuration, mid_run=True),
            running=running,
        )
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            code = runner.run(work)
    sys.exit(code)


def _flagz(given: Mapping[str, Any]) -> PageParts:
    def page(_: Mapping[str, str]) -> Iterable[bytes]:
        from eclectus.live.zpages import flags

        return [flags(given)]

    return page


def _observers(
    stack: ExitStack, configuration: Configuration, record: Path | None, most_bytes: float = inf
) -> list[StepObserver]:
    """The writer of the tape. A process before this one may have died of what its tape shows: it is kept."""
    if record is None:
        return []
    from eclectus.tape import TapeWriter

    if record.is_file():
        record.replace(record.with_name(f"previous-{record.name}"))

    def failed(error: OSError) -> None:
        _log.error("the recording of %s has ended: %s", record, error)

    return [stack.enter_context(TapeWriter(record, _header(configuration), failed, most_bytes)).step]


def _header(configuration: Configuration, *, mid_run: bool = False) -> Header:
    from eclectus import __version__
    from eclectus.tape import Header

    return Header(__version__, configuration.text, configuration.seed, mid_run=mid_run)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop if it is installed, which needs a fifth less CPU per request."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
