"""Plugins that a profile of kube-scheduler switches on or off: what Eclectus has for each.

Weights of scores are settings of `place: kube`; a score that is switched off weighs nothing there.
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
PARTS: Mapping[str, tuple[Part, ...]] = {
    "SchedulingGates": (Part("preEnqueue", _RULE),),
    "PrioritySort": (Part("queueSort", _QUEUE),),
    "NodeName": (Part("filter", _RULE),),
    "NodeUnschedulable": (Part("filter", _RULE),),
    "TaintToleration": (Part("filter", _RULE),),
    "NodeAffinity": (Part("filter", _RULE),),
    "NodePorts": (Part("filter", _RULE),),
    "NodeResourcesFit": (Part("filter", _RULE),),
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
"""Others that may be named: to switch one off changes nothing for pods that do not use the feature."""

SCORES: Mapping[str, tuple[str, int]] = {
    "TaintToleration": ("taintToleration", 3),
    "NodeAffinity": ("nodeAffinity", 2),
    "PodTopologySpread": ("podTopologySpread", 2),
    "InterPodAffinity": ("interPodAffinity", 2),
    "NodeResourcesFit": ("nodeResourcesFit", 1),
    "NodeResourcesBalancedAllocation": ("balancedAllocation", 1),
    "ImageLocality": ("imageLocality", 1),
}
"""Plugin that scores -> its weight among the settings of `place: kube`, and the default of kube-scheduler."""

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
            if each.name not in (*PARTS, *_WITHOUT_PART, PREEMPTION):
                yield Note(join(where, at), f"{each.name}: {_UNKNOWN}")
    for name, parts in PARTS.items():
        for part in parts:
            if off := switched_off(plugins, name, part.point):
                yield Note(join(path, off), f"{name}: {part.stays}")


def score_weights(plugins: Plugins) -> Iterator[tuple[str, int, str]]:
    """Scores whose weight is not kube-scheduler's default: the plugin, its weight, and where it is set."""
    for name, (_, default) in SCORES.items():
        if off := switched_off(plugins, name, "score"):
            yield name, 0, off
        for field, chosen in (("score", plugins.score), ("multiPoint", plugins.multi_point)):
            for at, each in enumerate(chosen.enabled):
                if each.name == name and each.weight and each.weight != default:
                    yield name, each.weight, join(f"{field}.enabled", at)


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
