"""Hints that users write on pods: estimates, and what a probe stands for. Nothing depends on their truth.

A hint that cannot be read is left out. It never keeps a pod from being counted or placed: anybody who may
create a pod may write one, also on pods that other schedulers place.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

from eclectus.api.names import ESTIMATED_SECONDS, JOB_WORK_SECONDS, PATH_SECONDS
from eclectus.kube import probe_room
from eclectus.kube.requests import FieldError
from eclectus.model.objects import Amounts

MAX_SECONDS: Mapping[str, float] = {
    ESTIMATED_SECONDS: 1e9,  # thirty years: a longer estimate is a mistake
    PATH_SECONDS: 1e9,
    JOB_WORK_SECONDS: 1e13,  # ten thousand pods for thirty years
}
MAX_TEXT = 80  # characters of a value that a message shows


def seconds(annotations: Mapping[str, str], annotation: str) -> float | None:
    """The seconds that an annotation of `MAX_SECONDS` gives; None without it or if it is invalid."""
    text = annotations.get(annotation)
    if text is None:
        return None
    try:
        found = float(text)
    except ValueError:
        found = nan
    return found if 0 < found <= MAX_SECONDS[annotation] else None


def notional_requests(annotations: Mapping[str, str]) -> Amounts:
    """What a probe stands for; empty without the annotation or if it is invalid."""
    try:
        return probe_room.from_annotations(annotations)
    except FieldError:
        return ()


def problems(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """What is wrong with the estimates on a pod; empty for most pods."""
    return tuple(
        f"{annotation}: {annotations[annotation][:MAX_TEXT]!r} is not a number of seconds above 0 "
        f"and at most {most:g}"
        for annotation, most in MAX_SECONDS.items()
        if annotation in annotations and seconds(annotations, annotation) is None
    )
