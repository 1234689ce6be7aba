"""Answers of `explain` without a cluster: a new engine repeats a tape up to a moment, and is asked there."""

from collections.abc import Iterator
from math import inf
from pathlib import Path

import click
import msgspec

from eclectus.api.names import DAG_JOB_LABEL, JOB_NAME_LABEL
from eclectus.cli.explain.moment import Moment
from eclectus.cli.explain.transport import Target
from eclectus.cli.output import Progress
from eclectus.config.configuration import parse
from eclectus.engine.engine import Engine
from eclectus.explain.node import node_explanation
from eclectus.explain.pod import explain_pod, job_explanation
from eclectus.explain.what_if import Question, what_if_explanation
from eclectus.tape import Step, TapeError, read


def answer_from_tape(tape: Path, at: Moment, target: Target, question: Question | None = None) -> bytes:
    """The explanation as JSON. Raises TapeError, OSError, SettingsError, QuestionError.

    It is that of this version: where the steps of the tape were decided otherwise, stderr says so.
    """
    header, steps = read(tape)
    engine = parse(header.configuration).engine()
    with Progress(f"repeating {tape.name}", unit="steps") as progress:
        last, now = repeat(engine, steps, at, progress)
    if not last:
        raise TapeError(f"{tape} has no steps")
    if last < at.step:
        raise TapeError(f"{tape} has {last} steps and no step {at.step}")
    key = target.namespace, target.name
    found: object
    match target.kind:
        case "pod" if question is not None:
            found = engine.read(what_if_explanation, key, question, now)
        case "pod":
            found = explain_pod(engine, *key, now)
        case "node":
            found = engine.read(node_explanation, target.name)
        case "job":
            labels = [(label, target.name) for label in (JOB_NAME_LABEL, DAG_JOB_LABEL)]
            found = engine.read(job_explanation, key, labels, now)
    return msgspec.json.encode(found)


def repeat(engine: Engine, steps: Iterator[Step], at: Moment, progress: Progress) -> tuple[int, float]:
    """Take the engine through the steps up to a moment. The last step by then, and the time on its clock."""
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
            return number, now
    return number, end if end < inf else now
