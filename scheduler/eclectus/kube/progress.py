"""How far a pod says that it is: the annotations `eclectus.dev/progress` and `eclectus.dev/phase-weights`.

    eclectus.dev/progress: "0.42"            of all of its work
    eclectus.dev/progress: "1, 0.4, 0"       or of each of its phases, in their order
    eclectus.dev/phase-weights: "1, 1, 8"    how much of its time each of them takes; equal without it

So a task of one phase and one of many are written alike, and which phases there are is said with each
progress. Weights are stated, not learned: who writes a task knows its phases, they belong to the template and
survive a restart, and phases that are learned would have to be timed by annotations that change every 30 s.

Both are hints of a user, who may be anybody, so their size is bounded. One that cannot be read is left out
and named: a progress as a whole, since a sum without one of its parts would be another progress; weights
so that all phases count the same.
"""

from collections.abc import Mapping
from math import isfinite

from eclectus.api import names
from eclectus.maths.stragglers import progress_of_phases

MAX_PHASES = 16
MAX_CHARACTERS = 512  # of either annotation
SHOWN = 80  # characters of a value that a message shows


def progress(annotations: Mapping[str, str]) -> float | None:
    """The part of its work that is done, within 0..1; None if the pod says nothing that can be read."""
    if names.PROGRESS not in annotations:
        return None
    phases = _numbers(annotations[names.PROGRESS])
    if phases is None:
        return None
    weights = _weights(annotations)
    return progress_of_phases(phases, (1.0,) * len(phases) if weights is None else weights)


def phase_weights(annotations: Mapping[str, str]) -> str | None:
    """The annotation, for a progress that is said elsewhere; None without one that is short enough."""
    text = annotations.get(names.PHASE_WEIGHTS)
    return None if text is None or len(text) > MAX_CHARACTERS else text


def progress_problems(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """What is wrong with the two; empty for most pods."""
    found = []
    for name, read in ((names.PROGRESS, _numbers), (names.PHASE_WEIGHTS, _positive)):
        if name in annotations and read(annotations[name]) is None:
            kind = "numbers" if name == names.PROGRESS else "numbers above 0"
            found.append(
                f"{name}: {annotations[name][:SHOWN]!r} is not a list of 1 to {MAX_PHASES} {kind} with commas"
            )
    if not found and names.PROGRESS in annotations and names.PHASE_WEIGHTS in annotations:
        phases, weights = (annotations[key].count(",") + 1 for key in (names.PROGRESS, names.PHASE_WEIGHTS))
        if phases != weights:
            found.append(
                f"{names.PHASE_WEIGHTS}: {weights} weights, but {names.PROGRESS} is of {phases} phases; "
                "all phases count the same"
            )
    return tuple(found)


def _weights(annotations: Mapping[str, str]) -> tuple[float, ...] | None:
    """None if there are none, or they are not those of the phases."""
    text = annotations.get(names.PHASE_WEIGHTS)
    if text is None or text.count(",") != annotations[names.PROGRESS].count(","):
        return None
    return _positive(text)


def _numbers(text: str) -> tuple[float, ...] | None:
    if len(text) > MAX_CHARACTERS or text.count(",") >= MAX_PHASES:
        return None
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        return None
    return found if all(isfinite(number) for number in found) else None


def _positive(text: str) -> tuple[float, ...] | None:
    found = _numbers(text)
    return None if found is None or min(found) <= 0.0 or not isfinite(sum(found)) else found
