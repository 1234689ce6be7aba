"""The text of an answer to a question: what would differ, then the pod as it would be explained."""

from __future__ import annotations

from collections.abc import Iterator

from eclectus.cli.columns import aligned
from eclectus.cli.explain.pod_text import Field, indented, parts
from eclectus.engine.explain.what_if.explanation import Candidate, PolicyAnswer, WhatIfExplanation


def what_if_lines(found: WhatIfExplanation) -> Iterator[str]:
    """The lines of the text."""
    yield from aligned([(f"{name}:", text) for name, text in _head(found)])
    if found.rules:
        yield ""
        yield "What differs:"
        lines = [["RULE", "REFUSES", "INSTEAD OF"]]
        lines += [[each.rule, str(each.refused), str(each.refused_before)] for each in found.rules]
        yield from indented(lines)
    if found.placement.candidates:
        yield ""
        yield from _candidates(found.placement)
    yield from parts(found.pod)


def _head(found: WhatIfExplanation) -> Iterator[Field]:
    yield "Pod", f"{found.pod.namespace}/{found.pod.name}"
    for text in found.changes:
        yield "What if", text
    yield "Answer", found.summary
    nodes = 0 if found.pod.funnel is None else found.pod.funnel.nodes
    is_other = found.with_room != found.with_room_before
    as_it_is = f"; as it is, on {found.with_room_before}" if is_other else ""
    yield "Room", f"on {found.with_room} of {nodes} nodes{as_it_is}"
    yield "Policy", found.placement.policy


def _candidates(answer: PolicyAnswer) -> Iterator[str]:
    """In the policy's order; with costs where it has some, and draws where it draws."""
    has_costs = any(each.cost is not None for each in answer.candidates)
    draws = any(0 < each.draws < answer.draws for each in answer.candidates)
    yield f"Nodes that {answer.policy} would take, the best one first:"
    columns = ["NODE", *(["COST"] if has_costs else []), *(["CHOSEN"] if draws else [])]
    yield from indented(
        [columns, *(_candidate(each, answer, has_costs, draws) for each in answer.candidates)]
    )


def _candidate(each: Candidate, answer: PolicyAnswer, has_costs: bool, draws: bool) -> list[str]:
    cost = "" if each.cost is None else f"{each.cost:.6g}"
    chosen = f"{each.draws} of {answer.draws} times"
    return [each.node, *([cost] if has_costs else []), *([chosen] if draws else [])]
