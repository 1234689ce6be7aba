"""Moments of a tape, as users write them."""

from math import inf, nan
from typing import NamedTuple

import click

STEP_PREFIX = "step:"


class Moment(NamedTuple):
    """A moment of a tape: so many seconds after its first step, or right after a step, counted from 1."""

    seconds: float = inf
    step: int = 0


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
