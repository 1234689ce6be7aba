"""Plugins that a profile of kube-scheduler switches on or off: what Eclectus has for each.

Scores that kube-scheduler has and Eclectus has not are not in the table: to switch them off changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from eclectus.config.reading import camel, join
from eclectus.config.upstream.fields import Plugins, PluginSet
from eclectus.config.upstream.notes import Note

PREEMPTION = "DefaultPreemption"
_ALL = "*"


@dataclass(frozen=True)
class Part:
    """What does the work of a plugin at one extension point, and why it stays."""

    point: str
    stays: str


_RULE = "Kubernetes' rules cannot be switched off, and pods that do not use the feature are not affected"
_QUEUE = (
    "the order of the queue is the profile's `order`: fifo is kube-scheduler's, and the others begin with it"
)
_PREFERENCES = "preferences count in every `place` policy; `rosella` has a weight for them, softWeight"
_FIT_SCORE = "`place: least-allocated` scores by room; choose another `place`, such as rosella"

PARTS: Mapping[str, tuple[Part, ...]] = {
    "SchedulingGates": (Part("preEnqueue", _RULE),),
    "PrioritySort": (Part("queueSort", _QUEUE),),
    "NodeName": (Part("filter", _RULE),),
    "NodeUnschedulable": (Part("filter", _RULE),),
    "TaintToleration": (Part("filter", _RULE), Part("score", _PREFERENCES)),
    "NodeAffinity": (Part("filter", _RULE), Part("score", _PREFERENCES)),
    "NodePorts": (Part("filter", _RULE),),
    "NodeResourcesFit": (Part("filter", _RULE), Part("score", _FIT_SCORE)),
    "PodTopologySpread": (Part("filter", _RULE),),
    "InterPodAffinity": (Part("filter", _RULE),),
    "DefaultBinder": (Part("bind", "Eclectus binds the pods that it places; leave it out"),),
}
"""kube-scheduler's plugins with a part in Eclectus that cannot be switched off."""

_WITHOUT_PART = (
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "DynamicResources",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
"""kube-scheduler's default weights of scores."""
_WEIGHT = (
    "the weights of scores are fixed: TaintToleration 3, NodeAffinity 2, NodeResourcesFit 1; leave it out"
)
_NO_SCORE = "Eclectus has no such score; leave it out"
_UNKNOWN = (
    "Eclectus runs no plugins and has none of this name; `eclectus policies` lists what it has, and pods "
    "that need this one stay with the scheduler that has it"
)


def plugin_notes(plugins: Plugins, path: str) -> Iterator[Note]:
    """What the plugins of a profile switch on or off without a counterpart."""
    for field in fields(plugins):
        chosen: PluginSet = getattr(plugins, field.name)
        where = join(join(path, camel(field.name)), "enabled")
        for at, each in enumerate(chosen.enabled):
            if reason := _enabled(each.name, each.weight):
                yield Note(join(where, at), f"{each.name}: {reason}")
    for name, parts in PARTS.items():
        for part in parts:
            if off := switched_off(plugins, name, part.point):
                yield Note(join(path, off), f"{name}: {part.stays}")


def switched_off(plugins: Plugins, name: str, point: str) -> str:
    """Where a default plugin is switched off at an extension point, such as `score.disabled[0]`; or empty.

    What is said of the point itself counts more than what is said of `multiPoint`.
    """
    for field in fields(plugins):
        if camel(field.name) not in (point, "multiPoint"):
            continue
        chosen: PluginSet = getattr(plugins, field.name)
        if any(each.name == name for each in chosen.enabled):
            return ""
        for at, each in enumerate(chosen.disabled):
            if each.name in (name, _ALL):
                return join(f"{camel(field.name)}.disabled", at)
    return ""


def _enabled(name: str, weight: int | None) -> str:
    """Why it makes a difference to kube-scheduler alone that a plugin is enabled; empty if it makes none."""
    if name not in PARTS and name not in (*_WITHOUT_PART, PREEMPTION):
        return _UNKNOWN
    if not weight or weight == _WEIGHTS.get(name, weight):
        return ""
    return _NO_SCORE if name in _WITHOUT_PART else _WEIGHT
