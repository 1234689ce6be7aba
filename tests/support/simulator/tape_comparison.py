"""Compares a tape with the decisions of the engine as the simulator builds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from eclectus.cli.replay import difference
from eclectus.config.settings_reading import read_mapping, read_yaml
from eclectus.model.events import NodeSeen
from eclectus.model.objects import Node
from eclectus.sim.runs import build_world
from eclectus.sim.scenario import Scenario, parse
from eclectus.tape import read
from short_scenarios import document


def first_difference(tape: Path) -> str:
    """The first decision of the simulator's engine that differs from the tape; empty if there is none.

    The engine gets the tape's events at the tape's times; the simulated world itself does not run.
    """
    header, steps = read(tape)
    scenario = scenario_of(tape)
    with patch("eclectus.sim.runs.engine_seed", return_value=header.seed):
        world = build_world(scenario, scenario.profiles[0], header.seed)
    for number, step in enumerate(steps, start=1):
        decided = tuple(world.engine.step(step.events, step.now))
        if decided != step.commands:
            return difference(number, step, decided)
    return ""


def scenario_of(tape: Path, **settings: Any) -> Scenario:
    """A scenario with the tape's pods, nodes and profiles."""
    header, steps = read(tape)
    configuration = read_mapping(read_yaml(header.configuration), "")
    nodes = {
        event.node.name: event.node for step in steps for event in step.events if isinstance(event, NodeSeen)
    }
    fields = document(
        workload={"tape": {"file": tape.name, **settings}},
        cluster={"groups": [_group(node) for node in nodes.values()]},
        profiles=configuration["profiles"],
        learn=configuration.get("learn"),
        measure={"warmUp": 0},
        allowUnstable=True,
    )
    return parse(yaml.safe_dump(fields), tape.parent)


def _group(node: Node) -> dict[str, Any]:
    cpu = dict(node.allocatable).get("cpu", 0)
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.taints]
    return {
        "name": node.name,
        "resources": {**dict(node.allocatable), "cpu": f"{cpu}m"},
        "labels": dict(node.labels),
        "taints": taints,
    }
