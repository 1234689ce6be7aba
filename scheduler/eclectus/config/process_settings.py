"""Settings of the shell. Each field says what it is, in which unit, between which bounds, and why so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting


@dataclass(frozen=True)
class ClientConnectionSettings:
    """How hard we may lean on the API server."""

    requests_in_flight: Annotated[
        int,
        Setting(
            "binds under way at once", "64 saturate a single API server; more would only queue there", least=1
        ),
    ] = 64
    events_in_flight: Annotated[
        int, Setting("events under way at once", "few, so that no event takes a place from a bind", least=1)
    ] = 8
    conditions_in_flight: Annotated[
        int,
        Setting(
            "PodScheduled=False patches under way at once",
            "people and autoscalers read them, no bind waits",
            least=1,
        ),
    ] = 8
    request_timeout: Annotated[
        float,
        Setting(
            "how long an answer may take before it counts as lost",
            "a bind sent by the leader must have ended before another may lead",
            unit="s",
            least=0.1,
            most=60,
        ),
    ] = 5.0
    events_waiting: Annotated[
        int,
        Setting(
            "events kept while the API server is busy; beyond it they are dropped and counted",
            "about 1 kB each",
            least=1,
        ),
    ] = 20_000


@dataclass(frozen=True)
class LeaderElection:
    """Which replica decides. The times are kube-scheduler's own."""

    leader_elect: Annotated[
        bool, Setting("decide only while holding the Lease", "two deciders over-commit nodes")
    ] = True
    resource_namespace: Annotated[str, Setting("namespace of the Lease")] = "kube-system"
    resource_name: Annotated[str, Setting("name of the Lease", "not kube-scheduler's: both may run")] = (
        "eclectus"
    )
    lease_duration: Annotated[
        float,
        Setting(
            "how long a standby waits after the last renewal it saw before it takes over",
            "whole seconds, as the Lease counts",
            unit="s",
            least=1,
            most=3600,
        ),
    ] = 15.0
    renew_deadline: Annotated[
        float,
        Setting(
            "how long after sending its last good renewal the leader stops by itself",
            "the gap to leaseDuration is what makes two leaders impossible",
            unit="s",
            least=0.5,
            most=3600,
        ),
    ] = 10.0
    retry_period: Annotated[
        float, Setting("time between two tries to acquire or renew", unit="s", least=0.1, most=600)
    ] = 2.0

    def __post_init__(self) -> None:
        if self.lease_duration != int(self.lease_duration):
            raise SettingsError("leaseDuration", "must be whole seconds, as the Lease counts them")
        if not self.renew_deadline < self.lease_duration:
            raise SettingsError("renewDeadline", "must be less than leaseDuration")
        if not self.retry_period * 1.2 < self.renew_deadline:
            raise SettingsError("retryPeriod", "times 1.2 must be less than renewDeadline")


@dataclass(frozen=True)
class ServerSettings:
    """Where probes and metrics are answered, in plain HTTP: nothing secret is said there."""

    address: Annotated[
        str,
        Setting(
            "address to listen on", "loopback offers nothing to a network unasked; the chart sets 0.0.0.0"
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        Setting(
            "TCP port; 0 takes a free one, which the log names",
            "next to kube-scheduler's 10259",
            least=0,
            most=65535,
        ),
    ] = 10269


@dataclass(frozen=True)
class LoadSignalSettings:
    """How busy nodes are by measurement, from a Prometheus. Off unless a url is given."""

    url: Annotated[
        str,
        Setting("the Prometheus server, such as http://prometheus.monitoring:9090; empty: no load signal"),
    ] = ""
    query: Annotated[
        str,
        Setting(
            "PromQL for all nodes at once; its values are shares of a node in use, 0 to 1",
            "node exporter's, of all processors of a node",
        ),
    ] = '1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[2m]))'
    node_label: Annotated[str, Setting("the label that tells the node")] = "instance"
    node_pattern: Annotated[
        str,
        Setting(
            "what that label looks like; its first group, if it has one, is the node's name",
            "a name, with or without a port",
        ),
    ] = r"([^:]+)(?::\d+)?"
    interval: Annotated[
        float,
        Setting("time between two queries", "load that matters lasts longer", unit="s", least=1, most=3600),
    ] = 30.0
    timeout: Annotated[
        float,
        Setting("how long an answer may take", "the client alone would wait for ever", unit="s", least=0.1),
    ] = 5.0

    def __post_init__(self) -> None:
        if self.url and not self.url.startswith(("http://", "https://")):
            raise SettingsError("url", f"must begin with http:// or https://, not {self.url[:80]!r}")
        try:
            re.compile(self.node_pattern)
        except re.error as error:
            raise SettingsError("nodePattern", f"is no regular expression: {error}") from None


@dataclass(frozen=True)
class NodeProfilesSettings:
    """Learning that survives restarts, in NodeProfile objects."""

    enabled: Annotated[
        bool, Setting("read them when beginning to lead, and write what has been learned since")
    ] = True
    interval: Annotated[
        float,
        Setting("time between two rounds of writes", "a crash loses at most so much", unit="s", least=1),
    ] = 60.0
    writes_a_round: Annotated[
        int,
        Setting("objects written in one round; the others wait for the next", "18,000 an hour", least=1),
    ] = 300


@dataclass(frozen=True)
class MetricsSettings:
    """How finely /metrics tells what is learned: at most groups times classes, three series each."""

    node_group_label: Annotated[
        str,
        Setting(
            "the label of nodes by whose value they are told together",
            "nodes of one type are meant to be equally fast; that some are not is what one looks for",
        ),
    ] = "node.kubernetes.io/instance-type"
    most_groups: Annotated[
        int,
        Setting(
            "groups told apart; the smallest beyond are told together, as `other`",
            "a label such as the hostname must not make a series a node",
            least=1,
            most=200,
        ),
    ] = 16
    most_classes: Annotated[
        int,
        Setting(
            "classes of work told apart; those with fewest samples beyond are told together, as `other`",
            "classes are whatever pods say",
            least=1,
            most=200,
        ),
    ] = 16

    def __post_init__(self) -> None:
        if not self.node_group_label:
            raise SettingsError("nodeGroupLabel", "must name a label, such as topology.kubernetes.io/zone")


@dataclass(frozen=True)
class ProcessSettings:
    """All settings of the shell."""

    client_connection: ClientConnectionSettings = ClientConnectionSettings()
    leader_election: LeaderElection = LeaderElection()
    server: ServerSettings = ServerSettings()
    load_signal: LoadSignalSettings = LoadSignalSettings()
    node_profiles: NodeProfilesSettings = NodeProfilesSettings()
    metrics: MetricsSettings = MetricsSettings()

    def __post_init__(self) -> None:
        election = self.leader_election
        gap = election.lease_duration - election.renew_deadline
        if election.leader_elect and self.client_connection.request_timeout > gap:
            problem = f"must be at most leaseDuration - renewDeadline = {gap:g}s"
            raise SettingsError("clientConnection.requestTimeout", problem)
