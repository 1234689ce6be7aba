"""Settings of the scheduler process, apart from the policies: connection, election, server, signals."""

import re
from dataclasses import dataclass, field
from ipaddress import ip_address

from eclectus.api.names import CLASS_LABEL
from eclectus.kubeclient.serving.server_settings import ServerSettings
from eclectus.model.errors import Problems, SettingsError
from eclectus.model.settings import setting

_SERVICE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_COLLECTOR = re.compile(r"https?://[^/@]+(/.*)?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class ClientConnectionSettings:
    """Limits of the requests to the API server."""

    requests_in_flight: int = setting(
        64,
        "binds in flight at the same time",
        "64 saturate a single API server; more would only queue there",
        least=1,
    )
    writes_beside_binds: int = setting(
        8,
        "conditions, plans of DAG jobs and events in flight together while a bind is, or while binds are "
        "answered after more than 100 ms; one while both; otherwise as many as requestsInFlight",
        "few: people and autoscalers read them, and they take capacity that binds need",
        least=1,
    )
    evictions_in_flight: int = setting(
        16,
        "pods for which room is being made at the same time: one nomination, then its evictions",
        "a quarter of the binds: each pod that makes room costs two writes",
        least=1,
    )
    request_timeout: float = setting(
        5.0,
        "time after which an answer counts as lost",
        "a bind sent by the leader must have ended before another process may lead",
        unit="s",
        least=0.1,
        most=60,
    )
    events_waiting: int = setting(
        20_000,
        "events that wait while the API server is busy; more are dropped and counted",
        "about 1 kB of memory each",
        least=1,
    )


@dataclass(frozen=True)
class LeaderElection:
    """Leader election among replicas. The default times are kube-scheduler's."""

    leader_elect: bool = setting(
        True, "schedule only while holding the Lease", "two processes that schedule would over-commit nodes"
    )
    resource_namespace: str = setting("kube-system", "namespace of the Lease")
    resource_name: str = setting(
        "eclectus", "name of the Lease", "not kube-scheduler's, so that both can run in one cluster"
    )
    lease_duration: float = setting(
        15.0,
        "time after the last renewal it has observed at which a standby takes over; whole seconds",
        "kube-scheduler's",
        unit="s",
        least=1,
        most=3600,
    )
    renew_deadline: float = setting(
        10.0,
        "time after it sent its last successful renewal from which on the leader writes nothing",
        "less than leaseDuration by a margin, so that there are never two leaders",
        unit="s",
        least=0.5,
        most=3600,
    )
    retry_period: float = setting(
        2.0, "time between two attempts to acquire or renew the Lease", unit="s", least=0.1, most=600
    )
    bind_fence: bool = setting(
        False,
        "the API server refuses late binds of a former leader, as the chart's policy does; "
        "clientConnection.requestTimeout is not limited by the times above then",
        "without that policy only the time limit of a request keeps a late bind from being done",
    )

    def __post_init__(self) -> None:
        problems = Problems()
        if self.lease_duration != int(self.lease_duration):
            problems.add("leaseDuration", "must be whole seconds, as Lease objects store them")
        if not self.renew_deadline < self.lease_duration:
            problem = f"must be less than leaseDuration, which is {self.lease_duration:g}s"
            problems.add("renewDeadline", problem)
        if not self.retry_period * 1.2 < self.renew_deadline:
            problem = f"times 1.2 must be less than renewDeadline, which is {self.renew_deadline:g}s"
            problems.add("retryPeriod", problem)
        problems.raise_any()


@dataclass(frozen=True)
class LoadSignalSettings:
    """The measured load of nodes, from a Prometheus server. Off unless a URL is given."""

    url: str = setting(
        "", "URL of the Prometheus server, such as http://prometheus.monitoring:9090; empty: no load signal"
    )
    query: str = setting(
        '1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[2m]))',
        "PromQL query for all nodes at once; its values are the share of each node in use, 0 to 1",
        "the CPU use of each node, from the node exporter",
    )
    node_label: str = setting("instance", "label of the samples that identifies the node")
    node_pattern: str = setting(
        r"([^:]+)(?::\d+)?",
        "regular expression for the label's value; its first group, or all of it, is the node's name",
        "a name with or without a port",
    )
    interval: float = setting(
        30.0, "time between two queries", "shorter bursts of load do not matter", unit="s", least=1, most=3600
    )
    timeout: float = setting(
        5.0, "time limit of a query", "the client has none by default", unit="s", least=0.1
    )

    def __post_init__(self) -> None:
        problems = Problems()
        if self.url and not self.url.startswith(("http://", "https://")):
            problems.add("url", f"must start with http:// or https://, not {self.url[:80]!r}")
        try:
            re.compile(self.node_pattern)
        except re.error as error:
            problems.add("nodePattern", f"is not a regular expression: {error}")
        problems.raise_any()


@dataclass(frozen=True)
class TracingSettings:
    """OpenTelemetry spans of placed pods, sent to a collector. Off unless an endpoint is given."""

    endpoint: str = setting(
        "",
        "URL to which the spans are posted by OTLP over HTTP, such as "
        "http://collector.monitoring:4318/v1/traces; empty: no spans",
    )
    sampled_ratio: float = setting(
        0.1,
        "share of the placed pods that have spans, drawn at random",
        "three spans a pod: 300 a second where 1,000 pods a second are placed",
        least=0,
        most=1,
    )

    def __post_init__(self) -> None:
        if self.endpoint and not _COLLECTOR.fullmatch(self.endpoint):
            # A password would be on the page /configz.
            problem = "must be http://HOST or https://HOST with a port and path, without user and password"
            raise SettingsError("endpoint", f"{problem}; in headers they are OTEL_EXPORTER_OTLP_HEADERS")


@dataclass(frozen=True)
class NodeProfilesSettings:
    """Keeping what is learned in NodeProfile objects, so that it survives restarts."""

    enabled: bool = setting(
        True, "read NodeProfiles when this process begins to lead, and write what is learned"
    )
    interval: float = setting(
        60.0,
        "time between two rounds of writes",
        "a crash loses at most a minute of learning",
        unit="s",
        least=1,
    )
    writes_a_round: int = setting(
        300,
        "objects written in one round; the others wait for the next round",
        "18,000 per hour at most",
        least=1,
    )


@dataclass(frozen=True)
class MetricsSettings:
    """The resolution of the learned speeds at /metrics: three series per group of nodes and class of work."""

    node_group_label: str = setting(
        "node.kubernetes.io/instance-type",
        "node label whose values are the groups of nodes",
        "nodes of one type should be equally fast; metrics show where they are not",
    )
    most_groups: int = setting(
        16,
        "number of groups; beyond it the smallest groups are merged into `other`",
        "bounds the number of series, even for a label such as the hostname",
        least=1,
        most=200,
    )
    most_classes: int = setting(
        16,
        "number of classes of work; beyond it those with the fewest samples are merged into `other`",
        "bounds the number of series, because pods name their classes freely",
        least=1,
        most=200,
    )

    def __post_init__(self) -> None:
        if not self.node_group_label:
            raise SettingsError("nodeGroupLabel", "must be a node label, such as topology.kubernetes.io/zone")


@dataclass(frozen=True)
class TenancySettings:
    """What the namespaces of the cluster share. What is learned of other work stays in its namespace."""

    shared_workloads: tuple[str, ...] = setting(
        (),
        f"classes of work (values of the label {CLASS_LABEL}) that are the same in all namespaces",
        "whoever may create pods in any namespace teaches a shared class to everybody",
    )

    def __post_init__(self) -> None:
        problems = Problems()
        for at, name in enumerate(self.shared_workloads):
            if not _LABEL_VALUE.fullmatch(name):
                problems.add(f"sharedWorkloads[{at}]", f"{name[:80]!r} is not the value of a label")
        problems.raise_any()


@dataclass(frozen=True)
class VisibilitySettings:
    """Explanations through the API server, as an aggregated API. Off unless a Service is named."""

    service: str = setting(
        "",
        "the Service behind the APIService, as NAMESPACE/NAME; its EndpointSlice has the same name. "
        "If empty, explanations are not served through the API server",
        "the chart names it with visibility.enabled",
    )
    address: str = setting(
        "0.0.0.0",  # noqa: S104 — who has no certificate of the API server is refused
        "address to listen on; clients without a certificate of the API server's front proxy are refused",
    )
    port: int = setting(
        10270, "TCP port; with 0 a free one is chosen", "beside that of server", least=0, most=65535
    )
    advertise_address: str = setting(
        "",
        "IP address at which the API server reaches this process; if empty, the one from which this process "
        "reaches the API server",
    )

    def __post_init__(self) -> None:
        problems = Problems()
        if self.service and not _SERVICE.fullmatch(self.service):
            problems.add("service", f"must be NAMESPACE/NAME, not {self.service[:80]!r}")
        if self.advertise_address and not _is_address(self.advertise_address):
            problems.add("advertiseAddress", f"{self.advertise_address[:80]!r} is not an IP address")
        problems.raise_any()


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class ProcessSettings:
    """All settings of the process."""

    client_connection: ClientConnectionSettings = ClientConnectionSettings()
    leader_election: LeaderElection = LeaderElection()
    server: ServerSettings = field(default_factory=ServerSettings)
    load_signal: LoadSignalSettings = LoadSignalSettings()
    tracing: TracingSettings = TracingSettings()
    node_profiles: NodeProfilesSettings = NodeProfilesSettings()
    metrics: MetricsSettings = MetricsSettings()
    tenancy: TenancySettings = TenancySettings()
    visibility: VisibilitySettings = VisibilitySettings()

    def __post_init__(self) -> None:
        election = self.leader_election
        gap = election.lease_duration - election.renew_deadline
        is_limited = election.leader_elect and not election.bind_fence
        if is_limited and self.client_connection.request_timeout > gap:
            most = f"must be at most leaseDuration - renewDeadline = {gap:g}s"
            problem = f"{most}, or two leaders could bind without bindFence"
            raise SettingsError("clientConnection.requestTimeout", problem)
