"""`eclectus simulate` and `eclectus scenarios`: compares policies on a simulated workload."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from eclectus import __version__
from eclectus.cli.output import Progress
from eclectus.config.settings_reading import read_file
from eclectus.model.errors import SettingsError
from eclectus.model.printed import nearest
from eclectus.sim.base.results import ComparisonReport, RunFailure, RunResult
from eclectus.sim.report.compare import summarise
from eclectus.sim.report.drawing import check_drawable, draw
from eclectus.sim.report.tables import text_lines
from eclectus.sim.runs import RunSpec, StopRequest, run_batch
from eclectus.sim.scenario import ComparedProfile, Scenario, about, load, shipped_scenarios

FILE = click.Path(dir_okay=False, path_type=Path)
INTERRUPTED = 130  # what a shell expects after Ctrl-C


@click.command()
@click.argument("scenario")
@click.option("--profile", "names", multiple=True, help="Run only this profile; can be repeated.")
@click.option(
    "--seeds", type=click.IntRange(1, 10_000), help="Number of runs per profile, with seeds 1, 2, …"
)
@click.option(
    "--seed",
    "exact_seeds",
    type=int,
    multiple=True,
    help="Run this seed instead of 1, 2, …; can be repeated.",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="PATH=VALUE",
    help="Change a field of the scenario; can be repeated.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 256), default=1, help="Number of processes; does not change results."
)
@click.option(
    "--json",
    "json_file",
    type=FILE,
    help="Write all results to this file; the format is docs/simulation.schema.json.",
)
@click.option(
    "--plot",
    "plot_file",
    type=FILE,
    help="Draw the results: an .html page, or with the extra sim a .png, .svg or .pdf.",
)
@click.option("--tape", "tape_file", type=FILE, help="Record a single run to this file, for eclectus replay.")
def simulate(
    *,
    scenario: str,
    names: tuple[str, ...],
    seeds: int | None,
    exact_seeds: tuple[int, ...],
    changes: tuple[str, ...],
    jobs: int,
    json_file: Path | None,
    plot_file: Path | None,
    tape_file: Path | None,
) -> None:
    """Compare the profiles of a SCENARIO (a file, or the name of a shipped scenario) over several seeds.

    Ctrl-C stops the runs and prints the results so far. A run that fails is reported and does not stop the
    others; the exit code is then 1.
    """
    path = _path(scenario)
    with Progress(f"reading {path.name}"):
        read = load(path, changes)
    for file in (json_file, plot_file, tape_file):
        if file is not None and not file.absolute().parent.is_dir():
            raise SettingsError(str(file), "its folder does not exist")  # now rather than after all runs
    if plot_file is not None:
        check_drawable(plot_file)
    profiles, run_seeds = _chosen_profiles(read, names), _seeds(read, seeds, exact_seeds)
    if tape_file is not None:
        _check_tape_possible(profiles, run_seeds)
    text = read_file(path)
    specs = [
        RunSpec(text, path.parent, changes, each.name, seed, tape_file)
        for each in profiles
        for seed in run_seeds
    ]
    stop = StopRequest()
    with stop.on_interrupt(), Progress("simulating", read.tasks * len(specs), "tasks") as progress:
        results = run_batch(specs, jobs, progress, stop)
    failures = [each for each in results if isinstance(each, RunFailure)]
    for each in failures:
        where = f"profile {each.profile}, seed {each.seed}"
        click.echo(f"{each.traceback}error: {where}: {each.reason}", err=True)
    if runs := [each for each in results if isinstance(each, RunResult)]:
        report = ComparisonReport(
            eclectus=__version__,
            scenario=path.stem,
            about=read.about,
            load=read.load,
            load_is_exact=read.load_is_exact,
            seeds=list(dict.fromkeys(spec.seed for spec in specs)),
            summaries=summarise(runs),
            runs=runs,
            failures=failures,
        )
        _write(report, json_file, plot_file)
    elif not failures:
        click.echo("stopped before any run had begun", err=True)
    if failures or stop.requested:
        sys.exit(1 if failures else INTERRUPTED)


@click.command()
def scenarios() -> None:
    """List the scenarios that come with Eclectus; `eclectus simulate NAME` runs one."""
    for name, path in shipped_scenarios().items():
        click.echo(f"{name:24} {about(path)}")


def _path(scenario: str) -> Path:
    """The path of a file, or of a shipped scenario given by name."""
    if Path(scenario).is_file():
        return Path(scenario)
    known = shipped_scenarios()
    if scenario not in known:
        raise SettingsError(
            scenario, f"is not a file and not a shipped scenario; {nearest(scenario, list(known))}"
        )
    return known[scenario]


def _seeds(scenario: Scenario, count: int | None, exact_seeds: tuple[int, ...]) -> Sequence[int]:
    if count is not None and exact_seeds:
        raise click.UsageError("give either --seeds or --seed")
    if any(seed < 0 for seed in exact_seeds):
        raise click.UsageError("a seed must be 0 or more")
    return exact_seeds or range(1, (count or scenario.seeds) + 1)


def _chosen_profiles(scenario: Scenario, names: tuple[str, ...]) -> list[ComparedProfile]:
    known = [each.name for each in scenario.profiles]
    for name in names:
        if name not in known:
            hint = nearest(name, known)
            raise click.UsageError(f"--profile {name}: the scenario has no such profile; {hint}")
    return [each for each in scenario.profiles if not names or each.name in names]


def _check_tape_possible(profiles: Sequence[ComparedProfile], seeds: Sequence[int]) -> None:
    if len(profiles) * len(seeds) > 1:
        raise click.UsageError("--tape records a single run: choose one --profile and one --seed")
    if profiles[0].oracle is not None:
        raise click.UsageError(
            "--tape: an oracle learner (policy: truth) cannot be replayed without its world"
        )
    if profiles[0].dispatchers.age:
        raise click.UsageError("--tape: stale views (dispatchers.age) cannot be replayed without their world")


def _write(report: ComparisonReport, json_file: Path | None, plot_file: Path | None) -> None:
    """Print the tables, and write the files."""
    click.echo("\n".join(text_lines(report)))
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    if plot_file is not None:
        with Progress(f"drawing {plot_file.name}"):
            draw(report, plot_file)
