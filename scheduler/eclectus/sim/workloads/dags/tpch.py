"""Profiles of the TPC-H queries on Spark, as the ERDOS scheduling simulator publishes them (MIT).

One JSON file has the measured stages by `tpch_q<query>_<size>_maxCores_<cores>`, one YAML file the graphs.
Task times depend on the number of cores that a query had when it was measured, so profiles of different
sizes and cores must not be mixed: both are single settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from eclectus.config.document import read_yaml
from eclectus.config.settings_reading import nearest
from eclectus.model.errors import SettingsError
from eclectus.sim.base.work import Classes, Dag, StageDraft, build_dag, class_name
from eclectus.sim.workloads.work_classes import Needs, TaskNeeds


class _Measured(Struct, frozen=True):
    """One stage of a profile."""

    stage_id: int
    num_tasks: Annotated[int, Meta(ge=1)]
    average_runtime_ms: Annotated[float, Meta(gt=0, le=1e12)]


class _Node(Struct, frozen=True):
    """One stage of a graph."""

    name: int
    children: tuple[int, ...] = ()


class _Query(Struct, frozen=True):
    name: str
    graph: tuple[_Node, ...]


class _Graphs(Struct, frozen=True):
    graphs: tuple[_Query, ...]


def read_tpch(  # both files, the chosen queries (all if empty), and the size and cores
    profiles: bytes,
    graphs: bytes,
    queries: Sequence[str],
    *,
    size: str,
    cores: int,
    needs: Needs,
    classes: Classes,
) -> list[Dag]:
    """The queries with their profiles of this size and cores. Raises ValueError or SettingsError."""
    measured = msgspec.json.decode(profiles, type=dict[str, list[_Measured]])
    known = {query.name: query for query in msgspec.convert(read_yaml(graphs.decode()), _Graphs).graphs}
    for at, name in enumerate(queries):
        if name not in known:
            raise SettingsError(f"queries[{at}]", f"{name!r} is not a query; {nearest(name, list(known))}")
    return [
        _dag(known[name], _column(measured, name, size, cores), needs, classes) for name in queries or known
    ]


def _column(measured: dict[str, list[_Measured]], query: str, size: str, cores: int) -> list[_Measured]:
    key = f"tpch_{query.lower()}_{size}_maxCores_{cores}"
    if key not in measured:
        sizes = sorted({each.split("_")[2] for each in measured if each.count("_") == 4})
        columns = sorted({each.split("_")[4] for each in measured if each.count("_") == 4}, key=int)
        raise SettingsError(
            "size" if size not in sizes else "cores",
            f"there is no profile {key}; sizes are {', '.join(sizes)}, cores {', '.join(columns)}",
        )
    return measured[key]


def _dag(query: _Query, stages: Sequence[_Measured], needs: Needs, classes: Classes) -> Dag:
    parents: dict[int, list[str]] = {node.name: [] for node in query.graph}
    for node in query.graph:
        for child in node.children:
            if child not in parents:
                raise ValueError(f"{query.name}: stage {node.name} has a child {child} that is not a stage")
            parents[child].append(str(node.name))
    if sorted(stage.stage_id for stage in stages) != sorted(parents):
        raise ValueError(f"{query.name}: the profile and the graph have different stages")
    drafts = [
        StageDraft(
            str(stage.stage_id),
            (needs(query.name, str(stage.stage_id)) or TaskNeeds()).work_class(
                class_name(query.name, str(stage.stage_id), classes)
            ),
            stage.num_tasks,
            stage.average_runtime_ms / 1000.0,
            tuple(parents[stage.stage_id]),
        )
        for stage in stages
    ]
    return build_dag(query.name, drafts)
