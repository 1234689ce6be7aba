"""A KubeSchedulerConfiguration as a SchedulerConfiguration, with a list of what has no counterpart.

A field made by `no_counterpart` is reported with its words where a file has it; the others are translated.
As in kube-scheduler, a file is read strictly: an unknown field is an error. What kube-scheduler does by
default and Eclectus does not is no matter of the file: docs/differences.md.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from textwrap import fill
from typing import Any, Literal

import yaml

from eclectus.api.names import API_VERSION, SCHEDULER_CONFIGURATION
from eclectus.config.configuration import duration, parse
from eclectus.config.settings_reading import camel, join, read, read_mapping, read_yaml, show
from eclectus.framework.profile_settings import AddedAffinity, SpreadDefaults, is_extended
from eclectus.model.errors import Problems, SettingsError
from eclectus.model.settings import Setting, setting

REASON = "why it has no counterpart"  # in the metadata of a field


def no_counterpart(reason: str, default: Any = None, unit: str = "") -> Any:
    """A field that is not translated: why, and what to do."""
    return field(default=default, metadata={REASON: reason, Setting: Setting("", unit=unit)})


_ALL_NODES = (
    "every node is compared, also in large clusters; leave it out (`place: {policy: rosella, view: sample}` "
    "samples nodes)"
)
_BACKOFF = (
    "the back-off is fixed: 1 s, doubling up to 10 s, after a refused bind or a failure alone; a pod without "
    "room is tried again when something changes that can help"
)
_JSON = "requests are JSON"
_IN_FLIGHT = (
    "requests in flight are limited, not their rate: set clientConnection.requestsInFlight if the API server "
    "needs a lower limit than 64"
)
_PROFILING = "there is no page for profiles of the process; metrics have the times of steps"
_OWN_LEASE = (
    "Eclectus has a Lease of its own and never takes kube-scheduler's; set leaderElection.resourceName and "
    "resourceNamespace here if the default does not do"
)
_CLAIMS = "pods with resource claims are refused; leave them to kube-scheduler"
_VOLUMES = "a bind waits 600 s for its volumes, and storage is scored by what stays free; leave it out"
_BALANCED = "balance is that of cpu and memory; leave it out"
_PREFERRED_TERMS = "terms of pods on nodes always count, required ones with weight 1; leave it out"


@dataclass(frozen=True)
class LeaderElection:
    """leaderElection."""

    leader_elect: bool | None = None
    lease_duration: float | None = setting(None, "", unit="s")
    renew_deadline: float | None = setting(None, "", unit="s")
    retry_period: float | None = setting(None, "", unit="s")
    resource_lock: str | None = no_counterpart("the lock is a Lease always; leave it out")
    resource_name: str | None = no_counterpart(_OWN_LEASE)
    resource_namespace: str | None = no_counterpart(_OWN_LEASE)


@dataclass(frozen=True)
class ClientConnection:
    """clientConnection."""

    kubeconfig: str | None = no_counterpart(
        "the chart's pods use their ServiceAccount; elsewhere `eclectus scheduler --kubeconfig`"
    )
    accept_content_types: str | None = no_counterpart(_JSON)
    content_type: str | None = no_counterpart(_JSON)
    qps: float | None = no_counterpart(_IN_FLIGHT)
    burst: int | None = no_counterpart(_IN_FLIGHT)


@dataclass(frozen=True)
class Plugin:
    """An entry of `enabled` or `disabled`."""

    name: str
    weight: int | None = None


@dataclass(frozen=True)
class PluginSet:
    """What is enabled and disabled at one extension point."""

    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


Plugins = Mapping[str, PluginSet]
"""plugins of a profile, by extension point."""

ExtensionPoint = Literal[
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit",
    "preBind", "bind", "postBind", "multiPoint", "placementGenerate", "placementScore", "podGroupPostFilter",
]  # fmt: skip
MULTI_POINT = "multiPoint"  # all extension points of a plugin


@dataclass(frozen=True)
class PluginConfig:
    """An entry of pluginConfig; what `args` may have depends on the name (ARGUMENTS)."""

    name: str
    args: dict[str, object] | None = None


@dataclass(frozen=True)
class Profile:
    """An entry of profiles."""

    scheduler_name: str = "default-scheduler"
    percentage_of_nodes_to_score: int | None = no_counterpart(_ALL_NODES)
    plugins: dict[ExtensionPoint, PluginSet] | None = None
    plugin_config: tuple[PluginConfig, ...] = ()


@dataclass(frozen=True)
class KubeSchedulerConfiguration:
    """The file, apart from apiVersion and kind."""

    profiles: tuple[Profile, ...] = ()
    leader_election: LeaderElection | None = None
    client_connection: ClientConnection | None = None
    parallelism: int | None = no_counterpart("nodes are compared in one thread, as arrays")
    percentage_of_nodes_to_score: int | None = no_counterpart(_ALL_NODES)
    pod_initial_backoff_seconds: int | None = no_counterpart(_BACKOFF)
    pod_max_backoff_seconds: int | None = no_counterpart(_BACKOFF)
    enable_profiling: bool | None = no_counterpart(_PROFILING)
    enable_contention_profiling: bool | None = no_counterpart(_PROFILING)
    delay_cache_until_active: bool | None = no_counterpart(
        "a standby follows the cluster always, so that it takes over at once"
    )
    extenders: tuple[object, ...] = no_counterpart(
        "no extender is called: nodes that it would refuse are used, and it binds nothing; "
        "keep kube-scheduler for pods that need it",
        (),
    )


# -- arguments of plugins ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ResourceWeight:
    """An entry of resources."""

    name: str
    weight: int = 1


@dataclass(frozen=True)
class ShapePoint:
    """An entry of shape."""

    utilization: int = 0
    score: int = 0


@dataclass(frozen=True)
class Ratio:
    """requestedToCapacityRatio."""

    shape: tuple[ShapePoint, ...] = ()


@dataclass(frozen=True)
class ScoringStrategy:
    """scoringStrategy of NodeResourcesFitArgs."""

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = ()
    requested_to_capacity_ratio: Ratio | None = None


@dataclass(frozen=True)
class NodeResourcesFitArgs:
    """How pods are compared with the resources of nodes."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy | None = None


@dataclass(frozen=True)
class NodeAffinityArgs:
    """Node affinity of every pod of the profile."""

    added_affinity: dict[str, object] | None = None


@dataclass(frozen=True)
class DefaultPreemptionArgs:
    """How many nodes preemption compares."""

    min_candidate_nodes_percentage: int | None = None
    min_candidate_nodes_absolute: int | None = None


@dataclass(frozen=True)
class PodTopologySpreadArgs:
    """Topology spread of pods that state none."""

    default_constraints: tuple[dict[str, object], ...] = ()
    defaulting_type: Literal["System", "List"] | None = None


@dataclass(frozen=True)
class InterPodAffinityArgs:
    """Scores by pods of the neighbourhood."""

    hard_pod_affinity_weight: int | None = no_counterpart(_PREFERRED_TERMS)
    ignore_preferred_terms_of_existing_pods: bool | None = no_counterpart(_PREFERRED_TERMS)


@dataclass(frozen=True)
class NodeResourcesBalancedAllocationArgs:
    """Scores by balance."""

    resources: tuple[ResourceWeight, ...] = no_counterpart(_BALANCED, ())


@dataclass(frozen=True)
class VolumeBindingArgs:
    """Binding of volumes."""

    bind_timeout_seconds: int | None = no_counterpart(_VOLUMES)
    shape: tuple[ShapePoint, ...] = no_counterpart(_VOLUMES, ())


@dataclass(frozen=True)
class DynamicResourcesArgs:
    """Allocation of claims."""

    filter_timeout: float | None = no_counterpart(_CLAIMS, unit="s")
    binding_timeout: float | None = no_counterpart(_CLAIMS, unit="s")


@dataclass(frozen=True)
class Note:
    """Something without a counterpart: where it is in the file, why, and what to do."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def marked(values: Any, path: str) -> Iterator[Note]:
    """The fields of `values` that are given and have no counterpart."""
    for part in fields(values):
        value, where = getattr(values, part.name), join(path, camel(part.name))
        reason = part.metadata.get(REASON)
        if value == part.default:
            continue
        if reason is not None and isinstance(value, tuple):
            yield from (Note(join(where, at), reason) for at in range(len(value)))
        elif reason is not None:
            yield Note(where, reason)
        elif is_dataclass(value):
            yield from marked(value, where)
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            for at, each in enumerate(value):
                yield from marked(each, join(where, at))


PREEMPTION = "DefaultPreemption"
_ALL = "*"


_RULE = "Kubernetes' rules cannot be switched off, and pods that do not use the feature are not affected"
_QUEUE = (
    "the order of the queue is the profile's `order`: fifo is kube-scheduler's, and the others begin with it"
)
PARTS: Mapping[str, tuple[str, str]] = {
    "SchedulingGates": ("preEnqueue", _RULE),
    "PrioritySort": ("queueSort", _QUEUE),
    "NodeName": ("filter", _RULE),
    "NodeUnschedulable": ("filter", _RULE),
    "TaintToleration": ("filter", _RULE),
    "NodeAffinity": ("filter", _RULE),
    "NodePorts": ("filter", _RULE),
    "NodeResourcesFit": ("filter", _RULE),
    "PodTopologySpread": ("filter", _RULE),
    "InterPodAffinity": ("filter", _RULE),
    "DefaultBinder": ("bind", "Eclectus binds the pods that it places; leave it out"),
}
"""kube-scheduler's plugins of which Eclectus does the work always: the extension point, and why it stays."""

_WITHOUT_PART = (
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "DynamicResources",
    "NodeDeclaredFeatures",
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
    "VolumeBinding": ("volumeBinding", 1),
}
"""Plugin that scores -> its weight among the settings of `place: kube`, and the default of kube-scheduler."""

_UNKNOWN = (
    "Eclectus runs no plugins and has none of this name; `eclectus policies` lists what it has, and pods "
    "that need this one stay with the scheduler that has it"
)


def plugin_notes(plugins: Plugins, path: str) -> Iterator[Note]:
    """What the plugins of a profile switch on or off without a counterpart."""
    for point, chosen in plugins.items():
        where = join(join(path, point), "enabled")
        for at, each in enumerate(chosen.enabled):
            if each.name not in (*PARTS, *_WITHOUT_PART, PREEMPTION):
                yield Note(join(where, at), f"{each.name}: {_UNKNOWN}")
    for name, (point, why) in PARTS.items():
        if off := switched_off(plugins, name, point):
            yield Note(join(path, off), f"{name}: {why}")


def score_weights(plugins: Plugins) -> Iterator[tuple[str, int, str]]:
    """Scores whose weight is not kube-scheduler's default: the plugin, its weight, and where it is set."""
    for name, (_, default) in SCORES.items():
        if off := switched_off(plugins, name, "score"):
            yield name, 0, off
        for where in ("score", MULTI_POINT):
            for at, each in enumerate(plugins.get(where, PluginSet()).enabled):
                if each.name == name and each.weight and each.weight != default:
                    yield name, each.weight, join(f"{where}.enabled", at)


def switched_off(plugins: Plugins, name: str, point: str) -> str:
    """Where a default plugin is switched off at an extension point, such as `score.disabled[0]`; or empty.

    What is said of the point itself counts more than what is said of `multiPoint`.
    """
    for where in (point, MULTI_POINT):
        chosen = plugins.get(where, PluginSet())
        if any(each.name == name for each in chosen.enabled):
            return ""
        for at, each in enumerate(chosen.disabled):
            if each.name in (name, _ALL):
                return join(f"{where}.disabled", at)
    return ""


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
        where, plugins = join(path, "plugins"), {str(point): each for point, each in profile.plugins.items()}
        notes += [*plugin_notes(plugins, where), *_weights(plugins, values["place"], where)]
        if switched_off(plugins, PREEMPTION, "postFilter"):
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
    kind, translate = ARGUMENTS.get(config.name, (None, None))
    if kind is None:
        return [Note(path, f"Eclectus has no plugin {config.name!r} with arguments; leave it out")]
    where = join(path, "args")
    given = {key: each for key, each in (config.args or {}).items() if key not in ("apiVersion", "kind")}
    arguments: object = read(kind, given, where)
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


def _given(values: Any) -> Values:
    """The fields that are given and have a counterpart, as a file spells them."""
    translated = (each.name for each in fields(values) if REASON not in each.metadata)
    return {camel(name): value for name in translated if (value := getattr(values, name)) is not None}


def _affinity(arguments: NodeAffinityArgs, values: Values, path: str) -> list[Note]:
    if arguments.added_affinity is not None:
        read(AddedAffinity, arguments.added_affinity, join(path, "addedAffinity"))
        values["addedAffinity"] = dict(arguments.added_affinity)
    return []


def _preemption(arguments: DefaultPreemptionArgs, values: Values, path: str) -> list[Note]:
    values["relieve"] |= _given(arguments)
    return []


def _spread(arguments: PodTopologySpreadArgs, values: Values, path: str) -> list[Note]:
    given = {
        "defaultingType": arguments.defaulting_type or "System",
        "defaultConstraints": list(arguments.default_constraints),
    }
    if not read(SpreadDefaults, given, path).is_system:
        values["topologySpread"] = given
    return []


ARGUMENTS: Mapping[str, tuple[type, Translate | None]] = {
    "NodeResourcesFit": (NodeResourcesFitArgs, _fit),
    "NodeAffinity": (NodeAffinityArgs, _affinity),
    "DefaultPreemption": (DefaultPreemptionArgs, _preemption),
    "PodTopologySpread": (PodTopologySpreadArgs, _spread),
    "InterPodAffinity": (InterPodAffinityArgs, None),
    "NodeResourcesBalancedAllocation": (NodeResourcesBalancedAllocationArgs, None),
    "VolumeBinding": (VolumeBindingArgs, None),
    "DynamicResources": (DynamicResourcesArgs, None),
}
"""Plugin -> its arguments, and what translates them; of the others the fields say what to do."""


UPSTREAM_KIND = "KubeSchedulerConfiguration"
UPSTREAM_VERSION = "kubescheduler.config.k8s.io/v1"
# No kube-scheduler that is supported today reads these: v1beta2 was removed in 1.28, v1beta3 in 1.29.
_OLDER = {
    "kubescheduler.config.k8s.io/v1beta3": f"its fields are those of v1: write {UPSTREAM_VERSION} instead",
    "kubescheduler.config.k8s.io/v1beta2": (
        "kube-scheduler 1.25 to 1.27 converts it: --config OLD --write-config-to NEW"
    ),
}
_WIDTH = 110


@dataclass(frozen=True)
class Translation:
    """The values of a SchedulerConfiguration that is valid, and what of the original is not in it."""

    document: dict[str, Any]
    notes: tuple[Note, ...]

    @property
    def text(self) -> str:
        """The file, the notes as comments at its beginning."""
        lines = ["# Translated from a KubeSchedulerConfiguration by `eclectus config import`."]
        lines += ["# Without a counterpart:"] if self.notes else []
        lines += [
            fill(str(each), _WIDTH, initial_indent="# - ", subsequent_indent="#   ") for each in self.notes
        ]
        return "\n".join(lines) + "\n" + _yaml(self.document)


def translate(text: str) -> Translation:
    """The text of a file, translated. Raises one SettingsError with all that is wrong with it."""
    mapping = dict(read_mapping(read_yaml(text), ""))
    _check_kind(mapping)
    given = {key: value for key, value in mapping.items() if key not in ("apiVersion", "kind")}
    source = read(KubeSchedulerConfiguration, given, "")
    document: dict[str, Any] = {"apiVersion": API_VERSION, "kind": SCHEDULER_CONFIGURATION, "profiles": []}
    notes, problems = list(marked(source, "")), Problems()
    for at, profile in enumerate(source.profiles or (Profile(),)):
        with problems.collected():
            values, of_profile = profile_values(profile, join("profiles", at))
            document["profiles"].append(values)
            notes += of_profile
    problems.raise_any()
    # What is not said of the Lease has kube-scheduler's default here too.
    if source.leader_election is not None and (election := _given(source.leader_election)):
        times = {key: duration(each) for key, each in election.items() if isinstance(each, float)}
        document["leaderElection"] = election | times
    parse(_yaml(document))  # what kube-scheduler would refuse as well, such as two profiles of one name
    return Translation(document, tuple(notes))


def _check_kind(mapping: dict[str, Any]) -> None:
    """Raises SettingsError for any other file."""
    if mapping.get("kind") != UPSTREAM_KIND:
        raise SettingsError("kind", f"must be {UPSTREAM_KIND}, not {show(mapping.get('kind'))}")
    version = mapping.get("apiVersion")
    if version != UPSTREAM_VERSION:
        advice = f"; {_OLDER[version]}" if isinstance(version, str) and version in _OLDER else ""
        raise SettingsError("apiVersion", f"must be {UPSTREAM_VERSION}, not {show(version)}{advice}")


def _yaml(document: dict[str, Any]) -> str:
    return str(yaml.safe_dump(document, sort_keys=False, width=_WIDTH))
