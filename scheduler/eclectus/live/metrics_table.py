"""The table of all metrics of the scheduler.

Where kube-scheduler has the same metric, name and labels are the same with the prefix `eclectus_`, so that
its dashboards need one edit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PREFIX = "eclectus_"


@dataclass(frozen=True)
class Family:
    """One metric. `name` is without PREFIX, and of counters without `_total`; `unit` is of its values."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    unit: str
    help: str
    labels: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """As it stands at /metrics."""
        return PREFIX + self.name + "_total" * (self.type == "counter")


SCHEDULING = (
    Family(
        "scheduling_attempt_duration_seconds",
        "histogram",
        "seconds",
        "Time from the decision to the API server's answer to the bind.",
        ("result", "profile"),
    ),
    Family(
        "pod_scheduling_sli_duration_seconds",
        "histogram",
        "seconds",
        "Time from the first observation of a pod without scheduling gates until it is bound.",
        ("attempts",),
    ),
    Family(
        "scheduling_algorithm_duration_seconds",
        "histogram",
        "seconds",
        "Duration of one step of the engine, which may place many pods.",
    ),
    Family(
        "longest_step_seconds",
        "gauge",
        "seconds",
        "Longest step of the engine in the last one to two minutes; health checks also wait meanwhile.",
    ),
    Family(
        "schedule_attempts",
        "counter",
        "attempts",
        "Attempts to schedule a pod: scheduled, unschedulable or error. A pod counts at every attempt.",
        ("result", "profile"),
    ),
    Family(
        "queue_incoming_pods",
        "counter",
        "pods",
        "Pods added to a queue, by queue and event.",
        ("queue", "event"),
    ),
    Family(
        "preemption_attempts",
        "counter",
        "attempts",
        "Searches for pods to evict, one for each class of refused pods and step.",
    ),
    Family("preemption_victims", "counter", "pods", "Pods whose eviction was sent."),
    Family(
        "pending_pods",
        "gauge",
        "pods",
        "Pending pods by queue: active, backoff, unschedulable, gated, line (of a node), gang (not started).",
        ("queue",),
    ),
    Family(
        "nominated_pods",
        "gauge",
        "pods",
        "Pods that wait for a node on which room is held for them: after preemption, or a node kept free.",
    ),
    Family(
        "cache_size",
        "gauge",
        "objects",
        "Objects in the scheduler's cache: nodes, classes (of equal pods), assumed_pods, dag_jobs.",
        ("type",),
    ),
    Family(
        "placed_by_wait_limit",
        "counter",
        "pods",
        "Pods placed because they had waited beside room for as long as their profile allows.",
    ),
    Family(
        "expected_wait_seconds",
        "counter",
        "seconds",
        "Expected waits of the pods that were placed after a wait for room of over a second.",
        ("profile", "set"),
    ),
    Family(
        "observed_wait_seconds",
        "counter",
        "seconds",
        "Waits of the same pods from the estimate to the placement; over the expected ones, 1 is exact.",
        ("profile", "set"),
    ),
    Family(
        "pod_scheduled_after_flush",
        "counter",
        "pods",
        "Pods that only the periodic recheck has found schedulable: each is a defect.",
    ),
    Family(
        "policy_faults",
        "counter",
        "actions",
        "Invalid actions of a policy, by its role and name, which the engine has refused; each is a defect.",
        ("policy",),
    ),
    Family(
        "ignored_preferences",
        "counter",
        "pods",
        "Pods whose spec has a preference that no rule reads, by feature; they are placed without it.",
        ("feature",),
    ),
    Family(
        "relaxed_preferences",
        "counter",
        "pods",
        "Pods bound to a node that does not meet all of their preferred node affinity.",
        ("profile",),
    ),
    Family("leader", "gauge", "", "1 while this replica holds the Lease and schedules, otherwise 0."),
    Family(
        "build_info",
        "gauge",
        "",
        "Always 1; the labels are the versions of Eclectus and of Python.",
        ("version", "python_version"),
    ),
)

REQUESTS = (
    Family("bind_conflicts", "counter", "binds", "Binds that the API server has refused.", ("reason",)),
    Family(
        "uncertain_binds",
        "counter",
        "binds",
        "Binds whose answer was lost, so that the pod was read to find out the result.",
    ),
    Family(
        "outbox_depth",
        "gauge",
        "requests",
        "Requests that wait or are in flight: binds, volumes, conditions, evictions, events, plans.",
        ("queue",),
    ),
    Family(
        "dropped_events",
        "counter",
        "events",
        "Kubernetes events that were dropped instead of written.",
        ("reason",),
    ),
    Family(
        "malformed_objects",
        "counter",
        "objects",
        "API objects of which a part could not be read: that part, or the object, was skipped.",
        ("kind",),
    ),
    Family(
        "watch_restarts",
        "counter",
        "restarts",
        "Watches and lists that ended with an error and were restarted.",
        ("kind",),
    ),
    Family(
        "node_profile_writes",
        "counter",
        "writes",
        "Writes of NodeProfile objects: written, refused, failed.",
        ("result",),
    ),
    Family(
        "plan_writes",
        "counter",
        "writes",
        "Writes of plans into the status of DagJobs: written, refused, failed, gone (with the job).",
        ("result",),
    ),
    Family(
        "load_signal_queries",
        "counter",
        "queries",
        "Queries for the measured load of nodes: answered, failed.",
        ("result",),
    ),
    Family("load_signal_nodes", "gauge", "nodes", "Nodes whose measured load is known."),
)

DAG_JOBS = (
    Family("plans", "counter", "plans", "Plans of DAG jobs that an order has made or changed."),
    Family("plan_slips", "counter", "slips", "Deadlines of DAG jobs that were moved to a later time."),
    Family("plan_slip_seconds", "counter", "seconds", "By how much these deadlines were moved in all."),
    Family(
        "lent_resource_seconds",
        "counter",
        "cores, bytes or devices, times seconds",
        "What DAG jobs have left to others of their shares: cores, bytes or devices, times seconds.",
        ("resource",),
    ),
    Family(
        "borrowed_resource_seconds",
        "counter",
        "cores, bytes or devices, times seconds",
        "What pods of DAG jobs have held beyond the shares of their jobs, in the same units.",
        ("resource",),
    ),
)

LEARNED = (
    Family(
        "arrival_rate",
        "gauge",
        "tasks per second",
        "Estimated arrival rate of all schedulers together, in tasks per second.",
    ),
    Family(
        "service_capacity",
        "gauge",
        "tasks per second",
        "Lower bound of the tasks per second that all live nodes can serve; 0 while nothing is known.",
    ),
    Family("arrivals", "counter", "tasks", "Tasks that have arrived, of all schedulers together."),
    Family("samples", "counter", "tasks", "Tasks whose duration was used as a sample."),
    Family(
        "speed_alarms",
        "counter",
        "changes",
        "Detected changes of a node's speed; the older samples of that node and class were discarded.",
    ),
    Family(
        "nodes",
        "gauge",
        "nodes",
        "Nodes by the state that the failure detector has inferred: unknown, live, suspect, dead.",
        ("group", "state"),
    ),
    Family("learned_nodes", "gauge", "nodes", "Nodes with samples of the class.", ("group", "class")),
    Family(
        "learned_speed_ratio",
        "gauge",
        "ratio",
        "Mean rate of these nodes divided by the mean rate of all nodes; 1 is average.",
        ("group", "class"),
    ),
    Family(
        "learned_confidence_ratio",
        "gauge",
        "ratio",
        "Mean probability that the learned rate of these nodes is within a third of the true rate.",
        ("group", "class"),
    ),
)

PRICES = (
    Family(
        "node_price",
        "gauge",
        "ratio",
        "Mean price of these nodes: the sum of demand over supply of all constraints that they satisfy.",
        ("group",),
    ),
    Family(
        "class_price_ratio",
        "gauge",
        "ratio",
        "How many times as long the class counts as running on these nodes, as they suit other work better.",
        ("group", "class"),
    ),
    Family(
        "constraint_demand_ratio",
        "gauge",
        "ratio",
        "What pods with these constraints hold and wait for, averaged over minutes, as a share of all nodes.",
        ("set",),
    ),
    Family(
        "constraint_supply_ratio",
        "gauge",
        "ratio",
        "What nodes that satisfy these constraints have beside services, as a share of all nodes.",
        ("set",),
    ),
)

FAMILIES = {family.name: family for family in (*SCHEDULING, *REQUESTS, *DAG_JOBS, *LEARNED, *PRICES)}
"""Every metric of the scheduler by its name, apart from `process_*`, which prometheus_client defines."""
