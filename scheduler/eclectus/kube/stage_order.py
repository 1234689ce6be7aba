"""The order of a DagJob's stages: each after those that it depends on."""

from collections.abc import Sequence

from eclectus.kube.requests import FieldError


def topological(stages: Sequence[tuple[str, Sequence[str]]]) -> list[int]:
    """The positions of stages, given as (name, names of its parents), with all parents before their children.

    Of stages that could be next, the one that was given first is. Raises FieldError for a name that is not
    unique or not known, and for a cycle.
    """
    known = {name: at for at, (name, _) in enumerate(stages)}
    for at, (name, parents) in enumerate(stages):
        if known[name] != at:
            raise FieldError(f"spec.stages[{at}].name", f"{name!r} is the name of another stage too")
        for parent in parents:
            if parent not in known:
                raise FieldError(f"spec.stages[{at}].dependsOn", f"{parent!r} is not a stage of this job")
    order, done, left = list[int](), set[str](), list(range(len(stages)))
    while left:
        following = next((at for at in left if done.issuperset(stages[at][1])), None)
        if following is None:
            names = ", ".join(stages[at][0] for at in left[:5])
            problem = f"the stages {names} depend on each other in a cycle: none could ever start"
            raise FieldError(f"spec.stages[{left[0]}].dependsOn", problem)
        order.append(following)
        done.add(stages[following][0])
        left.remove(following)
    return order
