"""Explanations without a cluster: a new engine repeats a tape up to a moment, and is asked there."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from eclectus.api.names import DAG_JOB_LABEL, JOB_NAME_LABEL
from eclectus.cli.explain.target import Target
from eclectus.cli.progress import Progress
from eclectus.config import parse
from eclectus.engine.engine import Engine
from eclectus.explain.questions import explain_job, explain_node, explain_pod, explain_what_if
from eclectus.explain.what_if import Question
from eclectus.model.explanation import JobExplanation, NodeExplanation, PodExplanation
from eclectus.tape import Step, TapeError, read

STEP_PREFIX = "step:"


class Moment(NamedTuple):
    """A moment of a tape: so many seconds after its first step, or right after a step, counted from 1."""

    seconds: float = inf
    step: int = 0


class Reached(NamedTuple):
    """How far a tape was repeated: its last step by then, and the time, seconds on the tape's clock."""

    step: int
    now: float


def read_moment(ctx: click.Context, param: click.Parameter, text: str | None) -> Moment:
    """`90` or `90.5` are seconds, `step:12` is a step, None is the end. Raises click.BadParameter."""
    if text is None:
        return Moment()
    is_step = text.startswith(STEP_PREFIX)
    try:
        found = Moment(step=int(text.removeprefix(STEP_PREFIX))) if is_step else Moment(float(text))
    except ValueError:
        found = Moment(seconds=nan)
    if found.step > 0 if is_step else 0.0 <= found.seconds < inf:
        return found
    problem = f"{text!r} is neither seconds after the first step nor step:NUMBER"
    raise click.BadParameter(problem, ctx=ctx, param=param)


def answer_from_tape(tape: Path, at: Moment, target: Target, question: Question | None = None) -> bytes:
    """The explanation as JSON. Raises TapeError, OSError, SettingsError, QuestionError.

    It is that of this version: where the steps of the tape were decided otherwise, stderr says so.
    """
    header, steps = read(tape)
    engine = parse(header.configuration).engine()
    with Progress(f"repeating {tape.name}", unit="steps") as progress:
        reached = repeat(engine, steps, at, progress)
    if not reached.step:
        raise TapeError(f"{tape} has no steps")
    if reached.step < at.step:
        raise TapeError(f"{tape} has {reached.step} steps and no step {at.step}")
    if question is not None:
        found = explain_what_if(engine, target.namespace, target.name, question, reached.now)
        return msgspec.json.encode(found)
    return msgspec.json.encode(_asked(engine, target, reached.now))


def _asked(engine: Engine, target: Target, now: float) -> PodExplanation | NodeExplanation | JobExplanation:
    match target.kind:
        case "node":
            return explain_node(engine, target.name)
        case "job":
            labels = [(key, target.name) for key in (JOB_NAME_LABEL, DAG_JOB_LABEL)]
            return explain_job(engine, target.namespace, target.name, labels, now)
        case "pod":
            return explain_pod(engine, target.namespace, target.name, now)


def repeat(engine: Engine, steps: Iterator[Step], at: Moment, progress: Progress) -> Reached:
    """Take the engine through the steps up to a moment."""
    number, now, end, is_equal = 0, 0.0, inf, True
    for step in steps:
        end = min(end, step.now + at.seconds)
        if step.now > end:
            break
        number, now = number + 1, step.now
        decided = tuple(engine.step(step.events, now))
        if is_equal and decided != step.commands:
            is_equal = False
            click.echo(f"note: step {number} was decided otherwise when the tape was recorded", err=True)
        progress(number)
        if number == at.step:
            return Reached(number, now)
    return Reached(number, end if end < inf else now)
