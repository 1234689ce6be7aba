"""The settings of one operator process. The chart passes every one as a command-line option."""

from dataclasses import dataclass
from typing import Literal

from eclectus.api.node_probe import ProbeId
from eclectus.kubeclient.election import ElectionSettings
from eclectus.kubeclient.leadership import JITTER
from eclectus.kubeclient.serving import server_settings
from eclectus.model.settings import REQUIRED, setting
from eclectus_operator import node_labels

REQUEST_SECONDS = 4.0  # time limit of a leader's request


@dataclass(frozen=True)
class Settings:
    """How the operator works."""

    instance: str = setting(
        REQUIRED, "name of this installation: 1 to 16 lower-case letters and digits, in every pod's name"
    )
    namespace: str = setting(REQUIRED, "namespace of the probe pods")
    unit_image: str = setting(
        "", "image of the built-in benchmark", why="none by default: there is no public one"
    )
    pull_secrets: str = setting(
        "", "names of Secrets in that namespace to pull images with, separated by commas"
    )
    priority_class: str = setting(
        "", "PriorityClass of probe pods", why="the chart's own has the lowest priority there is"
    )
    most_running: int = setting(
        10,
        "most probe pods at a time, of all NodeProbes together",
        why="on top of each NodeProbe's own limits; the chart's ResourceQuota has the same number",
        unit="pods",
        least=1,
        most=500,
    )
    node_labels: str = setting(
        "",
        "labels that nodes get from other labels of theirs: LABEL=SOURCE, separated by commas; a source "
        "is a label, or a text with labels in braces",
        why="none by default: it takes the permission to patch nodes",
    )
    orphan_seconds: float = setting(
        60.0,
        "age at which a probe pod that belongs to no NodeProbe is deleted",
        why="longer than any write can be in flight",
        unit="s",
        least=0,
    )
    look_seconds: float = setting(
        60.0,
        "longest time between two syncs",
        why="finds what no watch has reported; a sync without runs costs two lists",
        unit="s",
        least=1,
    )

    dag_jobs: bool = setting(
        False,
        "whether DagJobs are run",
        why="takes the permission to create and delete pods in all namespaces",
    )
    dag_waiting: int = setting(
        100,
        "most pods of a DagJob that exist and have not started; those of a gang are all created",
        why="enough for a scheduler to choose from; more cost etcd and quota and start nothing earlier",
        unit="pods",
        least=1,
        most=10_000,
    )
    dag_kept: int = setting(
        200,
        "most pods of a DagJob that are kept after they have ended, while the job runs",
        why="for their logs; what has succeeded is recorded in the status",
        unit="pods",
        least=0,
        most=100_000,
    )

    copies: str = setting(
        "",
        "namespaces in which pods that straggle get copies, if they ask for it, separated by commas",
        why="none by default: it takes the permission to create and delete pods there",
    )
    copy_requests: Literal["same", "none"] = setting(
        "same",
        "what copies request: the same as their originals, or nothing that can be used without a request",
        why="without requests copies take no room from others, and only the time that is left",
    )

    def __post_init__(self) -> None:
        ProbeId(self.instance, "run", 0)  # raises NamingError, which says what an instance may be
        node_labels.parse(self.node_labels)

    @property
    def copy_namespaces(self) -> tuple[str, ...]:
        """The namespaces in which pods may get copies."""
        return tuple(filter(None, self.copies.split(",")))


@dataclass(frozen=True)
class LeaseSettings:
    """The Lease by which one replica leads, and its times."""

    lease_namespace: str = setting(
        REQUIRED, "namespace of the Lease by which one replica of the operator leads"
    )
    lease_name: str = setting("eclectus-operator", "name of that Lease")
    lease_duration: float = setting(
        15.0, "how long a silent leader keeps the Lease", unit="s", least=2, most=3600
    )
    renew_deadline: float = setting(
        10.0,
        "a leader that could not renew for this long writes nothing until it has",
        unit="s",
        least=1,
        most=3600,
    )
    retry_period: float = setting(
        2.0, "pause between two tries to acquire or renew it", unit="s", least=0.1, most=600
    )

    def __post_init__(self) -> None:
        if not self.retry_period * JITTER < self.renew_deadline < self.lease_duration:
            raise ValueError(
                "lease times: retry-period times 1.2 < renew-deadline < lease-duration must hold"
            )
        if self.lease_duration - self.renew_deadline < REQUEST_SECONDS:
            raise ValueError(
                f"lease times: lease-duration must be {REQUEST_SECONDS:g} s above renew-deadline, so that "
                "a leader's last request has ended before another replica leads"
            )

    @property
    def election(self) -> ElectionSettings:
        """As the election takes them."""
        times = self.lease_duration, self.renew_deadline, self.retry_period
        return ElectionSettings(self.lease_namespace, self.lease_name, *times)


@dataclass(frozen=True)
class ServerSettings(server_settings.ServerSettings):
    """Where the process serves its health checks and metrics, and who may read the metrics."""

    port: int = setting(
        10279,
        "TCP port; with 0 a free one is chosen and logged",
        "not the scheduler's, so that both can run on one machine",
        least=0,
        most=65535,
    )
