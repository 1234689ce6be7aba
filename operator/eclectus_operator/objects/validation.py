"""What is wrong with a NodeProbe that passed its schema, as messages for its author.

The chart's ValidatingAdmissionPolicy rejects most of it at admission. It is checked again here, because a
cluster may run without the policy, and some of it only the operator knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from eclectus.api.node_probe import NodeProbeSpec, ProbeClass
from eclectus.kube.requests import FieldError
from eclectus_operator.objects.convert import ShapeError
from eclectus_operator.objects.pods import template_of
from eclectus_operator.objects.template_problems import image_problems, template_problems
from eclectus_operator.objects.template_schema import shape_problem
from eclectus_operator.objects.zero_requests import shareable_requests
from eclectus_operator.settings import Settings


def problems(spec: NodeProbeSpec, settings: Settings) -> list[str]:
    """What is wrong, each with its path; empty if the spec is valid."""
    return [f"classes[{work.name}]: {wrong}" for work in spec.classes for wrong in _of_work(work, settings)]


def _of_work(work: ProbeClass, settings: Settings) -> Iterator[str]:
    if sum(each is not None for each in (work.unit, work.run, work.template)) != 1:
        yield "give exactly one of unit, run and template"
        return
    if work.unit is not None and not settings.unit_image:
        yield "this operator was given no image of the built-in benchmark (--unit-image); use run or template"
    if work.run is not None:
        if work.run.shell and (len(work.run.command or ()) != 1 or work.run.args is not None):
            yield "run: shell takes one command, the line for /bin/sh -c, and no args"
        yield from image_problems("run.image", work.run.image)
        yield from _of_requests("run", work, settings)
    if work.template is not None:
        wrong = shape_problem(work.template)
        yield from [f"template: {wrong}"] if wrong else template_problems(work.template)
        yield from () if wrong else _of_requests("template.spec", work, settings)


def _of_requests(path: str, work: ProbeClass, settings: Settings) -> Iterator[str]:
    try:
        shareable_requests(template_of(work, settings)["spec"])
    except (FieldError, ShapeError) as error:
        yield f"{path}: {error}"
