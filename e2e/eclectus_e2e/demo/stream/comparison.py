"""The live comparison: five schedulers on sixty nodes of which one kind of work sees another order.

The same stream to each, one after another, at three loads, from nothing learned: every pod is timed, those
too that came before anything was known. Beside it stands what is left without the first quarter minute, in
which everybody places blindly: in a stream so short those pods alone are the last hundredth. A load is a
share of what the nodes do when each is given the same mix, which is what a scheduler can do that knows no
speeds: so all can bear it. A stream is the longer the lower its load, so that as many pods come in
each: it is pods that teach, and the last hundredths are then of as many.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from eclectus_e2e.demo import screen
from eclectus_e2e.demo.environment import started
from eclectus_e2e.demo.stream.report import ECLECTUS, Report, Summary, report
from eclectus_e2e.demo.stream.run import LoadLevel, run_all
from eclectus_e2e.demo.workload.arrivals import capacity
from eclectus_e2e.demo.workload.mixed import best_capacity, mix, mixed_nodes

# Load: mean and 99th percentile of Eclectus' response times wanted, as shares of kube-scheduler's.
TARGETS = {0.5: (0.55, 0.35), 0.8: (0.75, 0.55), 0.9: (0.95, 0.75)}
LOADS = sorted(TARGETS)
NODES_PER_GROUP, QUICK_NODES_PER_GROUP = 15, 2  # nodes of each of the four groups
WORK_SCALE, QUICK_WORK_SCALE = (
    1.7,
    0.4,
)  # of the work of mixed.py: 29 pods a second at load 0.9; 9 at load 0.5
SECONDS = 120.0  # at the highest load, so that what is learned is used for longer than it was learned
LEARNING_SECONDS, QUICK_LEARNING_SECONDS = 15.0, 4.0


def comparison(
    folder: Path,
    console: Console,
    *,
    seconds: float,
    seed: int,
    schedulers: Sequence[str],
    loads: Sequence[float],
    quick: bool,
) -> Report:
    """Play it at these of LOADS; writes comparison.json into the folder and prints the table."""
    nodes, work = (
        mixed_nodes(QUICK_NODES_PER_GROUP if quick else NODES_PER_GROUP, seed),
        mix(QUICK_WORK_SCALE if quick else WORK_SCALE),
    )
    legs = [LoadLevel(load, seconds * LOADS[-1] / load, 0.0, schedulers) for load in loads]
    can, could = capacity(nodes, work), best_capacity(nodes, work)
    with screen.opened(console) as shown:
        shown.say(f"starting a control plane, {len(nodes)} nodes and the chart")
        with started(folder / "cluster", nodes) as ground:
            done = list(run_all(ground, legs, seed, shown, work))
    found = report(done, nodes, seed=seed, main_load=loads[0], capacity=can)
    blind = QUICK_LEARNING_SECONDS if quick else LEARNING_SECONDS
    later = [replace(run, warm_seconds=blind) for run in done]
    after = report(later, nodes, seed=seed, main_load=loads[0], capacity=can)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comparison.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"
    )
    console.print(f"\n[bold]Response times[/] on {len(nodes)} nodes, seed {seed}, from nothing learned")
    console.print(_table(found, after, blind))
    console.print(
        f"load 1 is {can:.1f} pods a second, the same mix on every node; knowing who suits what, "
        f"{could:.1f} could be done",
        highlight=False,
    )
    return found


def _table(found: Report, after: Report, blind: float) -> Table:
    """Times, and shares of kube-scheduler's mean and 99th percentile: of all pods, and of the later ones."""
    table = Table("load", "scheduler", box=SIMPLE)
    for name in ("mean", "p99", "shares", "wanted", "", f"after {blind:g} s"):
        table.add_column(name, justify="right")
    for stage in found.loads.values():
        for name, result in stage.schedulers.items():
            times = (f"{result.response_seconds.mean:.2f} s", f"{result.response_seconds.p99:.2f} s")
            beside = _beside(stage.ratios.get(name), stage.load, name)
            later = after.loads[f"{stage.load:g}"].ratios.get(name)
            table.add_row(f"{stage.load:g}", name, *times, *beside, _shares(later))
        table.add_section()
    return table


def _beside(ratio: Summary | None, load: float, name: str) -> tuple[str, str, str]:
    """The shares, and for Eclectus what was wanted of them."""
    if ratio is None or name != ECLECTUS:
        return _shares(ratio), "", ""
    mean, p99 = TARGETS[load]
    met = ratio.mean <= mean and ratio.p99 <= p99
    return _shares(ratio), f"{mean:.2f}, {p99:.2f}", "[green]met[/]" if met else "[yellow]missed[/]"


def _shares(ratio: Summary | None) -> str:
    return f"{ratio.mean:.2f}, {ratio.p99:.2f}" if ratio else ""
