"""One profile of kube-scheduler as a profile of Eclectus: from typed fields to the plain values of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eclectus.config.reading import join, read
from eclectus.config.upstream.fields import (
    ARGUMENTS,
    DefaultPreemptionArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    PluginConfig,
    Plugins,
    PodTopologySpreadArgs,
    Profile,
    ScoringStrategy,
)
from eclectus.config.upstream.notes import Note, marked
from eclectus.config.upstream.plugins import PREEMPTION, SCORES, plugin_notes, score_weights, switched_off
from eclectus.framework.profile_settings import AddedAffinity, SpreadDefaults, is_extended
from eclectus.model.errors import SettingsError

Values = dict[str, Any]
Translate = Callable[[Any, Values, str], list[Note]]
"""`(arguments, profile, path)`: writes into the profile, and returns what has no counterpart."""

_PLACE = {
    "LeastAllocated": "least-allocated",
    "MostAllocated": "most-allocated",
    "RequestedToCapacityRatio": "requested-to-capacity-ratio",
}
_BY_DEFAULT = {"cpu": 1, "memory": 1}
_KUBE = "kube"
_WEIGHT = (
    "beside this scoringStrategy scores have fixed weights; `place: kube` has weights, with the strategy "
    "LeastAllocated of cpu and memory"
)
_NOT_EXTENDED = "is no extended resource, and kube-scheduler too ignores no other; left out"


def profile_values(profile: Profile, path: str) -> tuple[Values, list[Note]]:
    """The profile in a SchedulerConfiguration, and what has no counterpart. Raises SettingsError."""
    values: Values = {
        "schedulerName": profile.scheduler_name,
        "place": {"policy": _KUBE},
        "relieve": {"policy": "preemption"},
    }
    notes = []
    for at, each in enumerate(profile.plugin_config):
        notes += _arguments(each, values, join(join(path, "pluginConfig"), at))
    if profile.plugins is not None:
        where = join(path, "plugins")
        notes += [*plugin_notes(profile.plugins, where), *_weights(profile.plugins, values["place"], where)]
        if switched_off(profile.plugins, PREEMPTION, "postFilter"):
            values["relieve"] = {"policy": "none"}
    return values, notes


def _weights(plugins: Plugins, place: Values, path: str) -> list[Note]:
    """Written into a place that scores as kube-scheduler does; listed for another."""
    found = list(score_weights(plugins))
    if place["policy"] != _KUBE:
        return [Note(join(path, where), f"{name}: {_WEIGHT}") for name, _, where in found]
    place |= {SCORES[name][0]: weight for name, weight, _ in found}
    return []


def _arguments(config: PluginConfig, values: Values, path: str) -> list[Note]:
    kind = ARGUMENTS.get(config.name)
    if kind is None:
        return [Note(path, f"Eclectus has no plugin {config.name!r} with arguments; leave it out")]
    where = join(path, "args")
    given = {key: each for key, each in (config.args or {}).items() if key not in ("apiVersion", "kind")}
    arguments: object = read(kind, given, where)
    translate = _TRANSLATED.get(kind)
    translated = [] if translate is None else translate(arguments, values, where)
    return [*marked(arguments, where), *translated]


def _fit(arguments: NodeResourcesFitArgs, values: Values, path: str) -> list[Note]:
    ignored, notes = [], []
    for at, name in enumerate(arguments.ignored_resources):
        if is_extended(name):
            ignored.append(name)
        else:
            notes.append(Note(join(join(path, "ignoredResources"), at), f"{name} {_NOT_EXTENDED}"))
    if ignored:
        values["ignoredResources"] = ignored
    if arguments.ignored_resource_groups:
        values["ignoredResourceGroups"] = list(arguments.ignored_resource_groups)
    if arguments.scoring_strategy is not None:
        values["place"] = _place(arguments.scoring_strategy, join(path, "scoringStrategy"))
    return notes


def _place(strategy: ScoringStrategy, path: str) -> Values:
    weights = {each.name: each.weight or 1 for each in strategy.resources}
    if strategy.type == "LeastAllocated" and weights in ({}, _BY_DEFAULT):
        return {"policy": _KUBE}
    place: Values = {"policy": _PLACE[strategy.type], "ties": "random"}
    if weights and weights != _BY_DEFAULT:
        place["resources"] = weights
    if strategy.type == "RequestedToCapacityRatio":
        ratio = strategy.requested_to_capacity_ratio
        if ratio is None or not ratio.shape:
            problem = "is missing; kube-scheduler has no default for it"
            raise SettingsError(join(path, "requestedToCapacityRatio.shape"), problem)
        place["shape"] = [{"utilization": point.utilization, "score": point.score} for point in ratio.shape]
    return place


def _affinity(arguments: NodeAffinityArgs, values: Values, path: str) -> list[Note]:
    if arguments.added_affinity is not None:
        read(AddedAffinity, arguments.added_affinity, join(path, "addedAffinity"))
        values["addedAffinity"] = dict(arguments.added_affinity)
    return []


def _preemption(arguments: DefaultPreemptionArgs, values: Values, path: str) -> list[Note]:
    del path
    limits = {
        "minCandidateNodesPercentage": arguments.min_candidate_nodes_percentage,
        "minCandidateNodesAbsolute": arguments.min_candidate_nodes_absolute,
    }
    values["relieve"] |= {key: value for key, value in limits.items() if value is not None}
    return []


def _spread(arguments: PodTopologySpreadArgs, values: Values, path: str) -> list[Note]:
    given = {
        "defaultingType": arguments.defaulting_type or "System",
        "defaultConstraints": list(arguments.default_constraints),
    }
    if not read(SpreadDefaults, given, path).is_system:
        values["topologySpread"] = given
    return []


_TRANSLATED: Mapping[type, Translate] = {
    NodeResourcesFitArgs: _fit,
    NodeAffinityArgs: _affinity,
    DefaultPreemptionArgs: _preemption,
    PodTopologySpreadArgs: _spread,
}
"""Arguments with counterparts; of all others fields.py says what to do."""
