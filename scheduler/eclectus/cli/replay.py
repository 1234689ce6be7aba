"""`eclectus replay`: checks that the engine makes the same decisions again."""

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

import click
import msgspec
from msgspec.structs import replace

from eclectus import __version__
from eclectus.cli.output import Progress
from eclectus.config.configuration import parse
from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind, Command, Evict, Nominate
from eclectus.tape import Step, read


@click.command()
@click.argument("tape", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def replay(tape: Path) -> None:
    """Run a recorded TAPE through a new engine and compare every decision.

    Exits with 0 if all are equal; with 1 at the first difference, which is shown. Of a tape that begins
    mid-run (`kubectl eclectus record`) binds, nominations and evictions are compared: a new engine reports
    anew on what waits, and does not know all that the recorded one did.
    """
    header, steps = read(tape)
    if header.mid_run:
        click.echo("note: it begins mid-run: binds, nominations and evictions are compared", err=True)
        steps = (replace(step, commands=_placing(step.commands)) for step in steps)
    if header.eclectus != __version__:
        click.echo(f"note: recorded by eclectus {header.eclectus}, replayed by {__version__}", err=True)
    engine = parse(header.configuration).engine()
    with Progress(f"replaying {tape.name}", unit="steps") as progress:
        count, commands, found = _compare(engine, steps, progress, _placing if header.mid_run else tuple)
    if found:
        click.echo(found)
        sys.exit(1)
    click.echo(f"{tape}: {count} steps, {commands} commands, all equal")


def _placing(commands: Iterable[Command]) -> tuple[Command, ...]:
    return tuple(each for each in commands if isinstance(each, (Bind, Nominate, Evict)))


def _compare(
    engine: Engine,
    steps: Iterator[Step],
    progress: Progress,
    compared: Callable[[Iterable[Command]], tuple[Command, ...]],
) -> tuple[int, int, str]:
    """Number of steps and of commands, and the first difference, if there is one."""
    count = commands = 0
    for count, step in enumerate(steps, start=1):
        decided = compared(engine.step(step.events, step.now))
        if decided != step.commands:
            return count, commands, difference(count, step, decided)
        commands += len(decided)
        progress(count)
    return count, commands, ""


def difference(number: int, step: Step, decided: tuple[object, ...]) -> str:
    """The first command that differs, as recorded and as replayed."""
    pairs = enumerate(zip_longest(step.commands, decided))
    at, differing = next((at, each) for at, each in pairs if each[0] != each[1])
    recorded, replayed = (
        "(no command)" if each is None else msgspec.json.encode(each).decode() for each in differing
    )
    return (
        f"step {number} at {step.now!r}: command {at + 1} differs\n"
        f"  recorded: {recorded}\n  replayed: {replayed}\n"
        f"  after the events: {msgspec.json.encode(step.events).decode()}"
    )
