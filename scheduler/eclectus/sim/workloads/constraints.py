"""Constraint sets of jobs, drawn as wholes: of generated jobs, and beside recorded ones.

After Sharma and others, "Modeling and Synthesizing Task Placement Constraints in Google Compute Clusters"
(SoCC 2011): a job draws a whole set, because the nodes that satisfy all constraints of a set can be far fewer
than those that satisfy each of them. All tasks of a job have the same set. By default it does not depend on
the job's class; `shares` and `frequencies` correlate it with the class, and thereby with the size.

Sets have random streams of their own: with one seed the same jobs arrive at the same times, whatever their
sets are, so that a workload with constraints and the same without are pairs.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate, repeat

from msgspec.structs import replace as with_fields

from eclectus.model.errors import SettingsError, errors_below
from eclectus.model.objects import Spec
from eclectus.model.printed import nearest
from eclectus.model.settings import REQUIRED, setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.random_draws import endless_draws, stream
from eclectus.sim.base.work import Arrival, ArrivalPlan, WorkClass
from eclectus.sim.world.judge import forbidden


@dataclass(frozen=True)
class ConstraintSet:
    """Constraints that jobs have together."""

    node_selector: dict[str, str] = setting(REQUIRED, "labels that the node must carry, all of them")
    frequency: float = setting(1.0, "frequency among constrained jobs, relative to the other sets", least=0)
    frequencies: dict[str, float] = setting({}, "frequency among constrained jobs of single classes", least=0)

    def among(self, name: str) -> float:
        """Its relative frequency among the constrained jobs of the class."""
        return self.frequencies.get(name, self.frequency)


Variants = Sequence[tuple[float, WorkClass]]
"""Probability and class of work, for none and each of the constraint sets that jobs of a class may have."""


@dataclass(frozen=True)
class Constraints:
    """Which jobs have constraints, and which."""

    sets: tuple[ConstraintSet, ...]
    share: float = setting(0.5, "share of the jobs that have a set", least=0, most=1)
    shares: dict[str, float] = setting({}, "share of the jobs of single classes", least=0, most=1)

    def __post_init__(self) -> None:
        if not self.sets:
            problem = "is empty; write at least one set such as {nodeSelector: {disk: ssd}}"
            raise SettingsError("sets", problem)

    def variants(self, name: str, work_class: WorkClass) -> Variants:
        """Those of jobs of the class `name`, in addition to what the class itself states."""
        share = self.shares.get(name, self.share)
        total = sum(each.among(name) for each in self.sets)
        found = [(1.0 - share, work_class)]
        for each in self.sets if share else ():
            found.append((share * each.among(name) / total, _on(each.node_selector, work_class)))
        return [(probability, variant) for probability, variant in found if probability]

    def check(self, classes: Sequence[str], machines: Mapping[str, Machine]) -> None:
        """Raise SettingsError for an unknown class, a class without sets, and a set of no or all machines.

        A set that all machines satisfy does not constrain: its tasks would be counted in the wrong group.
        """
        named = {f"shares.{name}": name for name in self.shares}
        for at, each in enumerate(self.sets):
            named |= {f"sets[{at}].frequencies.{name}": name for name in each.frequencies}
        for path, name in named.items():
            if name not in classes:
                raise SettingsError(path, f"is not a class; {nearest(name, list(classes))}")
        for name in classes:
            if self.shares.get(name, self.share) and not any(each.among(name) for each in self.sets):
                raise SettingsError("sets", f"none has a frequency above 0 among jobs of class {name!r}")
        for at, each in enumerate(self.sets):
            path, count = f"sets[{at}].nodeSelector", satisfying(each.node_selector, machines.values())
            text = ", ".join(f"{key}: {value}" for key, value in each.node_selector.items())
            if not count:
                raise SettingsError(path, f"no machine satisfies {{{text}}}")
            if count == len(machines):
                raise SettingsError(path, f"all machines satisfy {{{text}}}, so it constrains nothing")


def _on(node_selector: Mapping[str, str], work_class: WorkClass) -> WorkClass:
    """The class, kept to nodes with these labels as well."""
    labels = {**dict(work_class.spec.node_selector), **node_selector}
    spec = with_fields(work_class.spec, node_selector=tuple(sorted(labels.items())))
    return with_fields(work_class, spec=spec)


def satisfying(node_selector: Mapping[str, str], machines: Iterable[Machine]) -> int:
    """How many of the machines carry all these labels."""
    spec = Spec(node_selector=tuple(sorted(node_selector.items())))
    return sum(not forbidden(spec, machine.node) for machine in machines)


def draws(seed: int, name: str) -> Iterator[float]:
    """What decides on the sets of the jobs of the class `name`, one number for each."""
    return endless_draws(stream(seed, f"constraints of {name}").random)


def drawn_classes(variants: Variants, numbers: Iterator[float]) -> Iterator[WorkClass]:
    """The classes of a class's jobs, one after the other: each has drawn its set."""
    probabilities, work_classes = zip(*variants, strict=True)
    if len(work_classes) == 1:
        return repeat(work_classes[0])
    bounds = list(accumulate(probabilities))[:-1]  # upper bounds of all variants but the last
    return (work_classes[bisect(bounds, number)] for number in numbers)


def constrained(
    plan: ArrivalPlan,
    constraints: Constraints | None,
    machines: Mapping[str, Machine],
    classes: Sequence[str] = (),
) -> ArrivalPlan:
    """The plan of recorded jobs, each of which draws a set; `classes`: names, by default those recorded.

    Raises SettingsError, also where jobs have constraints of their own: nobody drew these together with the
    sets, so that both would hold on nodes that may not exist.
    """
    if constraints is None:
        return plan
    with errors_below("constraints"):
        for each in plan.mean_sizes:
            if each.spec.node_selector or each.spec.affinity is not None:
                has = "have a node selector or a required node affinity of their own"
                raise SettingsError("", f"jobs of class {each.name!r} {has}; leave the drawn ones out")
        constraints.check(classes or sorted({each.name for each in plan.mean_sizes}), machines)
    variants = {each: constraints.variants(each.name, each) for each in plan.mean_sizes}
    return replace(
        plan,
        mean_sizes={
            variant: plan.mean_sizes[each] for each, known in variants.items() for _, variant in known
        },
        work_rates={
            variant: probability * plan.work_rates[each]
            for each, known in variants.items()
            for probability, variant in known
        },
        arrivals=partial(_with_sets, plan.arrivals, variants),
    )


def _with_sets(
    arrivals: Callable[[int], Iterator[Arrival]], variants: Mapping[WorkClass, Variants], seed: int
) -> Iterator[Arrival]:
    """The same jobs, each in the class that it has drawn. Classes of one name share a stream."""
    numbers = cache(partial(draws, seed))
    found = {each: drawn_classes(known, numbers(each.name)) for each, known in variants.items()}
    for job in arrivals(seed):
        yield with_fields(job, work_class=next(found[job.work_class]))
