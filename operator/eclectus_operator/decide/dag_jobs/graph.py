"""The graph of a DagJob's stages: what is wrong with it, its order, and the longest paths through it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from eclectus.api.dag_job import DagJobSpec, Stage
from eclectus_operator.objects.dag_jobs.pods import RESERVED_KEYS
from eclectus_operator.objects.template_schema import shape_problem

Seconds = Mapping[str, float | None]
"""Stage -> seconds; None: unknown."""


def problems(spec: DagJobSpec) -> list[str]:
    """What is wrong with a spec that passed its schema, each with its path; empty if it is valid."""
    return [*_of_graph(spec), *(wrong for stage in spec.stages for wrong in _of_template(stage))]


def ordered(spec: DagJobSpec) -> list[Stage]:
    """The stages, each after those that it depends on. Of a valid spec."""
    stages = {stage.name: stage for stage in spec.stages}
    return [stages[name] for name in _sorter(spec).static_order()]


def path_seconds(spec: DagJobSpec, seconds: Seconds) -> dict[str, float | None]:
    """Of each stage, the longest path from the start of one of its tasks to the end of the job.

    None where a stage on the way has no estimate.
    """
    children: dict[str, list[str]] = {stage.name: [] for stage in spec.stages}
    for stage in spec.stages:
        for parent in stage.depends_on:
            children[parent].append(stage.name)
    found: dict[str, float | None] = {}
    for stage in reversed(ordered(spec)):
        own, after = seconds.get(stage.name), [found[child] for child in children[stage.name]]
        known = [each for each in after if each is not None]
        found[stage.name] = None if own is None or len(known) < len(after) else own + max(known, default=0.0)
    return found


def _of_graph(spec: DagJobSpec) -> Iterator[str]:
    names = {stage.name for stage in spec.stages}
    unknown = [(stage.name, each) for stage in spec.stages for each in stage.depends_on if each not in names]
    for stage_name, parent in unknown:
        yield f"stages[{stage_name}].dependsOn: there is no stage {parent!r}"
    if unknown:
        return
    try:
        _sorter(spec).prepare()
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        yield f"stages: {circle} depend on each other in a circle, so none of them could ever start"


def _of_template(stage: Stage) -> Iterator[str]:
    path = f"stages[{stage.name}].template"
    wrong = shape_problem(stage.template)
    if wrong:
        yield f"{path}: {wrong}"
        return
    metadata = stage.template.get("metadata", {})
    for kind in ("labels", "annotations"):
        for key in sorted(metadata.get(kind, {}).keys() & set(RESERVED_KEYS)):
            yield f"{path}.metadata.{kind}[{key}]: it marks probe pods, which only the operator makes"


def _sorter(spec: DagJobSpec) -> TopologicalSorter[str]:
    return TopologicalSorter({stage.name: stage.depends_on for stage in spec.stages})
