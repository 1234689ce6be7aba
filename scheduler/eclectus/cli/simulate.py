"""`eclectus simulate` and `eclectus scenarios`: what would these policies do to this workload?"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from eclectus import __version__
from eclectus.config.reading import nearest
from eclectus.core.errors import SettingsError
from eclectus.sim.compare import Question, Stop, answer, summarise
from eclectus.sim.reading import parse, read_text
from eclectus.sim.results import Report, Run
from eclectus.sim.scenario import Contestant, Scenario
from eclectus.sim.shipped import sentence, shipped
from eclectus.sim.table import lines

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("scenario")
@click.option("--profile", "names", multiple=True, help="Only this profile; may be given again.")
@click.option("--seeds", type=click.IntRange(1, 10_000), help="Runs of each profile, with seeds 1, 2, …")
@click.option("--seed", "chosen", type=int, multiple=True, help="Exactly this seed; may be given again.")
@click.option("--set", "changes", multiple=True, metavar="PATH=VALUE", help="Change a field of the scenario.")
@click.option("--jobs", type=click.IntRange(1, 256), default=1, help="Processes; changes no result.")
@click.option(
    "--json", "json_file", type=FILE, help="Write everything there, by docs/simulation.schema.json."
)
@click.option("--plot", "plot_file", type=FILE, help="Draw it (.png, .svg or .pdf); needs eclectus[sim].")
@click.option("--tape", "tape_file", type=FILE, help="Record a single run, for eclectus replay.")
def simulate(
    *,
    scenario: str,
    names: tuple[str, ...],
    seeds: int | None,
    chosen: tuple[int, ...],
    changes: tuple[str, ...],
    jobs: int,
    json_file: Path | None,
    plot_file: Path | None,
    tape_file: Path | None,
) -> None:
    """Compare the profiles of a SCENARIO, a file or the name of one that is shipped, over several seeds.

    Ctrl-C ends the runs and prints what is known so far.
    """
    path = _path(scenario)
    read = _read(path, changes)
    if plot_file is not None:
        from eclectus.sim.plots import draw, require

        require(plot_file)
    asked = _asked(read, names)
    counted = _seeds(read, seeds, chosen)
    if tape_file is not None:
        _refuse_tape(asked, counted)
    text = read_text(path)
    questions = [
        Question(text, path.parent, changes, each.name, seed, tape_file) for each in asked for seed in counted
    ]
    stop = Stop()
    with stop.on_interrupt():
        runs = answer(questions, jobs, _Bar(read.tasks * len(questions)), stop)
    if not runs:
        raise click.Abort
    report = _report(read, path, questions, runs)
    click.echo("\n".join(lines(report)))
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    if plot_file is not None:
        draw(report, plot_file)
    if stop.asked:
        sys.exit(130)  # what a shell expects after Ctrl-C


@click.command()
def scenarios() -> None:
    """List the scenarios that come with Eclectus; `eclectus simulate NAME` runs one."""
    for name, path in shipped().items():
        click.echo(f"{name:24} {sentence(path)}")


def _path(scenario: str) -> Path:
    """A file, or a shipped scenario by its name."""
    if Path(scenario).is_file():
        return Path(scenario)
    known = shipped()
    if scenario not in known:
        raise SettingsError(
            scenario, f"is no file, and no scenario of that name is shipped; {nearest(scenario, list(known))}"
        )
    return known[scenario]


def _read(path: Path, changes: tuple[str, ...]) -> Scenario:
    try:
        return parse(read_text(path), path.parent, changes)
    except SettingsError as error:
        raise SettingsError(str(path), str(error)) from None


def _seeds(scenario: Scenario, count: int | None, chosen: tuple[int, ...]) -> Sequence[int]:
    if count is not None and chosen:
        raise click.UsageError("give either --seeds or --seed")
    if any(seed < 0 for seed in chosen):
        raise click.UsageError("a seed is 0 or more")
    return chosen or range(1, (count or scenario.seeds) + 1)


def _asked(scenario: Scenario, names: tuple[str, ...]) -> list[Contestant]:
    known = [each.name for each in scenario.contestants]
    for name in names:
        if name not in known:
            hint = nearest(name, known)
            raise click.UsageError(f"--profile {name}: the scenario has no such profile; {hint}")
    return [each for each in scenario.contestants if not names or each.name in names]


def _refuse_tape(asked: Sequence[Contestant], seeds: Sequence[int]) -> None:
    if len(asked) * len(seeds) > 1:
        raise click.UsageError("--tape records a single run: choose one --profile and one --seed")
    if asked[0].truth is not None:
        raise click.UsageError(
            "--tape: a learner that is told the truth cannot be replayed without its world"
        )
    if asked[0].dispatchers.age:
        raise click.UsageError("--tape: pictures that grow old cannot be replayed without their world")


def _report(scenario: Scenario, path: Path, questions: Sequence[Question], runs: list[Run]) -> Report:
    return Report(
        eclectus=__version__,
        scenario=path.stem,
        about=scenario.about,
        load=scenario.load,
        load_is_exact=scenario.load_is_exact,
        seeds=list(dict.fromkeys(question.seed for question in questions)),
        summaries=summarise(runs),
        runs=runs,
    )


class _Bar:
    """Progress with rate and time to go, on a terminal only."""

    def __init__(self, expected: int) -> None:
        self._expected = max(expected, 1)
        self._began = self._told = time.monotonic()
        self._shows = sys.stderr.isatty()

    def __call__(self, ended: int) -> None:
        now = time.monotonic()
        if not self._shows or now - self._told < 0.2 or not ended:
            return
        self._told = now
        rate = ended / (now - self._began)
        left = max(self._expected - ended, 0) / rate
        share = min(ended / self._expected, 1.0)
        bar = "█" * int(30 * share)
        end = "\r" if share < 1.0 else "\r\033[K"
        click.echo(
            f"\r{bar:░<30} {share:4.0%}  {rate:,.0f} tasks/s  {left:,.0f} s to go \033[K", err=True, nl=False
        )
        click.echo(end, err=True, nl=False)
