"""The fields of a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), and which have no counterpart.

A field made by `no_counterpart` is reported with its words where a file has it. upstream.py
translates the others. As in kube-scheduler, a file is read strictly: an unknown field is an error.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

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
_VOLUMES = "a bind waits 600 s for its volumes, and nodes are not scored by them; leave it out"
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


@dataclass(frozen=True)
class Plugins:
    """plugins of a profile, by extension point."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()


@dataclass(frozen=True)
class PluginConfig:
    """An entry of pluginConfig; what `args` may have depends on the name (ARGUMENTS in upstream.py)."""

    name: str
    args: dict[str, object] | None = None


@dataclass(frozen=True)
class Profile:
    """An entry of profiles."""

    scheduler_name: str = "default-scheduler"
    percentage_of_nodes_to_score: int | None = no_counterpart(_ALL_NODES)
    plugins: Plugins | None = None
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
