"""The table of all metrics of the scheduler.

Where kube-scheduler has the same metric, name and labels are the same with the prefix `eclectus_`, so that
its dashboards need one edit.
"""

from collections.abc import Iterator

from msgspec import Struct

PREFIX = "eclectus_"

# Of each metric: name, without PREFIX and of counters without `_total`; type; unit of its values; labels; and
# its help text below.
_TABLE = """
scheduling_attempt_duration_seconds | histogram | seconds | result, profile
    Time from the decision to the API server's answer to the bind.
pod_scheduling_sli_duration_seconds | histogram | seconds | attempts
    Time from the first observation of a pod without scheduling gates until it is bound.
scheduling_algorithm_duration_seconds | histogram | seconds | -
    Duration of one step of the engine, which may place many pods.
longest_step_seconds | gauge | seconds | -
    Longest step of the engine in the last one to two minutes; health checks also wait meanwhile.
schedule_attempts | counter | attempts | result, profile
    Attempts to schedule a pod: scheduled, unschedulable or error. A pod counts at every attempt.
queue_incoming_pods | counter | pods | queue, event
    Pods added to a queue, by queue and event.
preemption_attempts | counter | attempts | -
    Searches for pods to evict, one for each class of refused pods and step.
preemption_victims | counter | pods | -
    Pods whose eviction was sent.
reclaim_dry_run_victims | counter | pods | -
    Pods that pools in a dry run would have evicted, by their events, at most one a minute for each pool.
pending_pods | gauge | pods | queue
    Pending pods by queue: active, backoff, unschedulable, gated, line (of a node), gang, quota, arriving.
nominated_pods | gauge | pods | -
    Pods that wait for a node on which room is held for them: after preemption, or a node kept free.
cache_size | gauge | objects | type
    Objects in the scheduler's cache: nodes, classes (of equal pods), assumed_pods, dag_jobs, resources.
placed_by_wait_limit | counter | pods | -
    Pods placed because they had waited beside room for as long as their profile allows.
expected_wait_seconds | counter | seconds | profile, set
    Expected waits of the pods that were placed after a wait for room of over a second.
observed_wait_seconds | counter | seconds | profile, set
    Waits of the same pods from the estimate to the placement; over the expected ones, 1 is exact.
pod_scheduled_after_flush | counter | pods | -
    Pods that only the periodic recheck has found schedulable: each is a defect.
policy_faults | counter | actions | policy
    Invalid actions of a policy, by its role and name, which the engine has refused; each is a defect.
flow_solve_duration_seconds | histogram | seconds | -
    Time in which the solver has answered a flow problem of a Place policy, in a process of its own.
flow_solves | counter | problems | result
    Flow problems by their answer: optimal, infeasible, failed (its pods were placed without the solver).
ignored_preferences | counter | pods | feature
    Pods whose spec has a preference that no rule reads, by feature; they are placed without it.
relaxed_preferences | counter | pods | profile
    Pods bound to a node that does not meet all of their preferred node affinity.
leader | gauge | - | -
    1 while this replica holds the Lease and schedules, otherwise 0.
build_info | gauge | - | version, python_version
    Always 1; the labels are the versions of Eclectus and of Python.
config_reloads | counter | changes | result
    Changes of the configuration file while it runs: applied, refused (a part needs a restart), invalid.

bind_conflicts | counter | binds | reason
    Binds that the API server has refused.
uncertain_binds | counter | binds | -
    Binds whose answer was lost, so that the pod was read to find out the result.
outbox_depth | gauge | requests | queue
    Requests that wait or are sent: binds, volumes, conditions, evictions, events, plans, pools, stragglers.
dropped_events | counter | events | reason
    Kubernetes events that were dropped instead of written.
malformed_objects | counter | objects | kind
    API objects of which a part could not be read: that part, or the object, was skipped.
watch_restarts | counter | restarts | kind
    Watches and lists that ended with an error and were restarted.
node_profile_writes | counter | writes | result
    Writes of NodeProfile objects: written, refused, failed.
plan_writes | counter | writes | result
    Writes of plans into the status of DagJobs: written, refused, failed, gone (with the job).
pool_writes | counter | writes | result
    Writes of what is measured into the status of Pools: written, refused, failed, gone (with the Pool).
straggler_writes | counter | writes | result
    Writes of the condition that a pod is late, or so no more: written, refused, failed, gone (with the pod).
load_signal_queries | counter | queries | result
    Queries for the measured load of nodes: answered, failed.
load_signal_nodes | gauge | nodes | -
    Nodes whose measured load is known.

plans | counter | plans | -
    Plans of DAG jobs that an order has made or changed.
plan_slips | counter | slips | -
    Deadlines of DAG jobs that were moved to a later time.
plan_slip_seconds | counter | seconds | -
    By how much these deadlines were moved in all.
lent_resource_seconds | counter | cores, bytes or devices, times seconds | resource
    What DAG jobs have left to others of their shares: cores, bytes or devices, times seconds.
borrowed_resource_seconds | counter | cores, bytes or devices, times seconds | resource
    What pods of DAG jobs have held beyond the shares of their jobs, in the same units.

straggling_pods | gauge | pods | -
    Running pods that are marked as late, so that a copy of them is made.
copies_started | counter | copies | -
    Copies of late pods that have run.
copies_settled | counter | copies | result
    Copies of which one of the two has succeeded: won (the copy was first), lost.
copies_refused | counter | pods | reason
    Late pods that got no copy: firstAttemptsWait, poolLimit, poolCopies, jobCopies, copiesLose.
copy_seconds | counter | seconds | kind
    saved: tasks ended so much sooner than expected; lost_copy, lost_original: so long has run what lost.

data_starts | counter | pods | level
    Pods that name nodes with their data, by where they have started: node (one of these), a label, any.
data_bytes | counter | bytes | level
    The data of these pods: but for level node they are read from another node.
data_wait_seconds | counter | seconds | level
    For how long these pods have waited while another node had room.
data_waiting_pods | gauge | pods | node
    Pods that wait for this node, which has their data, while others have room. Nodes with most such pods.
data_gain_ratio | gauge | ratio | class
    So many times as long pods of the class take away from their data, at least. Classes with most samples.

arrival_rate | gauge | tasks per second | -
    Estimated arrival rate of all schedulers together, in tasks per second.
service_capacity | gauge | tasks per second | -
    Lower bound of the tasks per second that all live nodes can serve; 0 while nothing is known.
arrivals | counter | tasks | -
    Tasks that have arrived, of all schedulers together.
samples | counter | tasks | -
    Tasks whose duration was used as a sample.
speed_alarms | counter | changes | -
    Detected changes of a node's speed; the older samples of that node and class were discarded.
nodes | gauge | nodes | group, state
    Nodes by the state that the failure detector has inferred: unknown, live, suspect, dead.
learned_nodes | gauge | nodes | group, class
    Nodes with samples of the class.
learned_speed_ratio | gauge | ratio | group, class
    Mean rate of these nodes divided by the mean rate of all nodes; 1 is average.
learned_node_speed_ratio | gauge | ratio | node
    Speed of the 20 slowest and the 20 fastest nodes over all work; 1 is the mean of nodes with samples.
learned_confidence_ratio | gauge | ratio | group, class
    Mean probability that the learned rate of these nodes is within a third of the true rate.

node_price | gauge | ratio | group
    Mean price of these nodes: the sum of demand over supply of all constraints that they satisfy.
class_price_ratio | gauge | ratio | group, class
    How many times as long the class counts as running on these nodes, as they suit other work better.
constraint_demand_ratio | gauge | ratio | set
    What pods with these constraints hold and wait for, averaged over minutes, as a share of all nodes.
constraint_supply_ratio | gauge | ratio | set
    What nodes that satisfy these constraints have beside services, as a share of all nodes.

pool_held | gauge | resources | pool, resource
    What the pods of the pool hold; cores and bytes. The 99 largest pools are named, the others are other.
pool_share | gauge | resources | pool, resource
    What the pool is entitled to now, by minima, weights and what its siblings need.
pool_demand | gauge | resources | pool, resource
    What its pods hold, and those request that wait and may start.
pool_waiting_pods | gauge | pods | pool
    Pods of the pool that wait.
pool_running_jobs | gauge | jobs | pool
    Jobs of the pool of which a pod has a node.
pool_below_share_seconds | gauge | seconds | pool, kind
    For how long it lacks its minimum, or the part of its share below which it may claim that; 0 if neither.
"""


class Family(Struct, frozen=True):
    """One metric of the table."""

    name: str
    type: str  # counter, gauge or histogram
    labels: tuple[str, ...]
    help: str

    @property
    def full_name(self) -> str:
        """The name at /metrics."""
        return PREFIX + self.name + "_total" * (self.type == "counter")


def _families() -> Iterator[Family]:
    rows = (line for line in _TABLE.splitlines() if line)
    for name, kind, _unit, labels in (row.split(" | ") for row in rows):
        yield Family(name, kind, () if labels == "-" else tuple(labels.split(", ")), next(rows).strip())


FAMILIES = {family.name: family for family in _families()}
"""Every metric of the scheduler by its name, apart from `process_*`, which prometheus_client defines."""
