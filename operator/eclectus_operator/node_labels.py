"""Labels that describe a node's machine, from labels of others, such as Node Feature Discovery's. Pure.

A mapping names for each such label where its value comes from: another label, or a text with labels in
braces, such as `{example.com/kernel.major}.{example.com/kernel.minor}`.

The labels are written to the Node rather than read as if they were there: when a pod arrives, the kubelet
compares its nodeSelector and required node affinity with the Node, and fails it where they do not match.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from eclectus.api.names import MACHINE_LABELS
from eclectus.model.errors import Problems

_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_BETWEEN = re.compile(r"[-A-Za-z0-9_.]*")
_IN_BRACES = re.compile(r"\{([^{}]*)\}")

NodeLabels = Mapping[str, str]
"""Label to set -> text with the labels it comes from in braces."""


def parse(text: str) -> NodeLabels:
    """The mapping of `LABEL=SOURCE,LABEL=SOURCE`. Raises SettingsError with all that is wrong."""
    found: dict[str, str] = {}
    problems = Problems()
    for entry in filter(None, text.split(",")):
        label, _, source = entry.partition("=")
        template = source if "{" in source or "}" in source else f"{{{source}}}"
        for problem in (_label_problem(label, found), _source_problem(template)):
            if problem:
                problems.add(f"node-labels {label}", problem)
        found[label] = template
    problems.raise_any()
    return found


def changes(mapping: NodeLabels, labels: Mapping[str, str]) -> dict[str, str]:
    """The labels to set on a node that has these labels.

    A label whose source the node lacks, or whose value would be no label value, is left as it is.
    """
    wanted = {
        label: _IN_BRACES.sub(lambda part: labels[part[1]], template)
        for label, template in mapping.items()
        if labels.keys() >= set(_IN_BRACES.findall(template))
    }
    valid = {label: value for label, value in wanted.items() if _VALUE.fullmatch(value)}
    return {label: value for label, value in valid.items() if labels.get(label) != value}


def _label_problem(label: str, others: NodeLabels) -> str:
    if label in others:
        return "is named twice"
    if label in MACHINE_LABELS:
        return ""
    close = get_close_matches(label, MACHINE_LABELS, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(MACHINE_LABELS)}"
    return f"is not a label of machines; {hint}"


def _source_problem(template: str) -> str:
    keys = _IN_BRACES.findall(template)
    if not keys or not _BETWEEN.fullmatch(_IN_BRACES.sub("", template)):
        return f"{template!r} is neither a label nor a text with labels in braces"
    for key in keys:
        if not _KEY.fullmatch(key):
            return f"its source {key!r} is not the name of a label"
        if key in MACHINE_LABELS:
            return f"its source {key!r} is set by this mapping itself; name the label that it comes from"
    return ""
