"""The second act from beginning to end: its ground, its files, its tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from eclectus_e2e.demo import screen
from eclectus_e2e.demo.environment import started
from eclectus_e2e.demo.perturbations.plan import Settings, make_layout
from eclectus_e2e.demo.perturbations.plots import draw
from eclectus_e2e.demo.perturbations.prediction import predict
from eclectus_e2e.demo.perturbations.report import PerturbationReport, report
from eclectus_e2e.demo.perturbations.tables import tables
from eclectus_e2e.demo.perturbations.timeline import run


def act_two(plan: Settings, folder: Path, console: Console) -> PerturbationReport:
    """Play it; writes act-two.json and act-two.png into the folder."""
    players = make_layout(plan)
    expected = predict(plan, players)
    with screen.opened(console) as shown:
        shown.say(f"starting a control plane with {len(players.nodes)} nodes, the chart and its operator")
        with started(folder / "cluster", players.nodes, values=_values(plan.learn)) as ground:
            noted = run(ground, plan, players, expected, shown)
    found = report(noted, plan, players, expected)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "act-two.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    draw(found, noted, plan, players, folder / "act-two.png")
    for table in tables(found):
        console.print(table)
    return found


def _values(learn: Mapping[str, float]) -> dict[str, Any]:
    """The chart's values: as they are, with the operator, and with the learner's settings that differ.

    What was learned is written for the operator every two seconds: the act is short.
    """
    settings = {_camel(name): value for name, value in learn.items()}
    config = {"learn": settings, "nodeProfiles": {"interval": "2s"}}
    return {"operator": {"enabled": True}, "config": config}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
