"""The command lines of etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

Pure: files and ports in, arguments out. Every flag that is not Kubernetes' default says why.
"""

from dataclasses import dataclass
from pathlib import Path

from eclectus_e2e.testbed.controlplane.certificates import Authority, KeyPair
from eclectus_e2e.testbed.controlplane.kubeconfig import write_kubeconfig

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Ports:
    """Where one control plane listens: etcd on loopback, the API server on `address`."""

    etcd_client: int
    etcd_peer: int
    apiserver: int
    address: str = LOOPBACK

    @property
    def url(self) -> str:
        """The API server's."""
        return f"https://{self.address}:{self.apiserver}"


@dataclass(frozen=True)
class Clients:
    """Makes kubeconfigs for one API server, each with a client certificate of its own."""

    directory: Path
    authority: Authority
    url: str

    def kubeconfig(self, file: str, user: str, group: str | None = None) -> Path:
        """Write `file`.kubeconfig for a user in a group."""
        pair = self.authority.issue(file, user, group)
        path = self.directory / f"{file}.kubeconfig"
        return write_kubeconfig(path, self.url, self.authority.certificate, pair)


@dataclass(frozen=True)
class Files:
    """Certificates and kubeconfigs of one control plane."""

    directory: Path
    clients: Clients
    authority: Path
    server: KeyPair
    etcd_client: KeyPair
    kubelet_client: KeyPair
    service_account_key: Path
    admin: Path
    controller_manager: Path
    scheduler: Path


def write_files(directory: Path, ports: Ports) -> Files:
    """Make a new authority and everything that it signs."""
    authority = Authority(directory / "certificates", ports.address)
    clients = Clients(directory, authority, ports.url)
    return Files(
        directory=directory,
        clients=clients,
        authority=authority.certificate,
        server=authority.issue("server", "eclectus-e2e-server", server=True),
        etcd_client=authority.issue("etcd-client", "kube-apiserver"),
        kubelet_client=authority.issue("kubelet-client", "eclectus-e2e-apiserver", "system:masters"),
        service_account_key=authority.signing_key("service-account"),
        admin=clients.kubeconfig("admin", "eclectus-e2e-admin", "system:masters"),
        controller_manager=clients.kubeconfig("kube-controller-manager", "system:kube-controller-manager"),
        scheduler=clients.kubeconfig("kube-scheduler", "system:kube-scheduler"),
    )


def etcd(files: Files, ports: Ports) -> list[str]:
    """One etcd member. TLS on both ports: an open etcd would let any local user past RBAC."""
    client, peer = f"https://127.0.0.1:{ports.etcd_client}", f"https://127.0.0.1:{ports.etcd_peer}"
    return [
        f"--data-dir={files.directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--client-cert-auth",
        f"--trusted-ca-file={files.authority}",
        f"--cert-file={files.server.certificate}",
        f"--key-file={files.server.key}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={files.authority}",
        f"--peer-cert-file={files.server.certificate}",
        f"--peer-key-file={files.server.key}",
        "--unsafe-no-fsync",  # the data is thrown away with the cluster; a disk's fsync is not measured
        "--quota-backend-bytes=8589934592",  # benchmarks write more than the default 2 GiB
        "--log-level=warn",
    ]


def apiserver(
    files: Files, ports: Ports, *, taint_nodes_by_condition: bool, audited: str | None
) -> list[str]:
    """The API server, with RBAC really checked.

    Without `taint_nodes_by_condition` a node is not born with the not-ready taint. `audited`: a
    namespace whose ServiceAccounts' requests are written to `audit_log`.
    """
    arguments = [
        f"--etcd-servers=https://127.0.0.1:{ports.etcd_client}",
        f"--etcd-cafile={files.authority}",
        f"--etcd-certfile={files.etcd_client.certificate}",
        f"--etcd-keyfile={files.etcd_client.key}",
        f"--secure-port={ports.apiserver}",
        f"--bind-address={ports.address}",
        f"--advertise-address={ports.address}",  # else it looks for a network card; a sandbox may have none
        f"--client-ca-file={files.authority}",
        f"--tls-cert-file={files.server.certificate}",
        f"--tls-private-key-file={files.server.key}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files.service_account_key}",
        f"--service-account-signing-key-file={files.service_account_key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged=true",
        f"--kubelet-client-certificate={files.kubelet_client.certificate}",  # for logs and exec
        f"--kubelet-client-key={files.kubelet_client.key}",
        "--kubelet-preferred-address-types=InternalIP",  # a node's name is in no DNS here
    ]
    if ports.address == LOOPBACK:
        arguments.append("--endpoint-reconciler-type=none")  # the kubernetes Service may not point there
    if not taint_nodes_by_condition:
        arguments.append("--disable-admission-plugins=TaintNodesByCondition")
    return arguments + ([] if audited is None else _audit(files.directory, audited))


def audit_log(directory: Path) -> Path:
    """Where the API server of a control plane's directory writes its audit events, one JSON a line."""
    return directory / "audit.log"


def _audit(directory: Path, namespace: str) -> list[str]:
    policy = directory / "audit-policy.yaml"
    # Everybody else's requests would be most of the file, and none of the question.
    policy.write_text(
        "apiVersion: audit.k8s.io/v1\n"
        "kind: Policy\n"
        "omitStages: [RequestReceived]\n"
        "rules:\n"
        f"  - {{level: Metadata, userGroups: ['system:serviceaccounts:{namespace}']}}\n"
        "  - {level: None}\n"
    )
    return [f"--audit-policy-file={policy}", f"--audit-log-path={audit_log(directory)}"]


def controller_manager(files: Files, controllers: str) -> list[str]:
    """Jobs, ReplicaSets, garbage collection, ServiceAccounts, disruption budgets, node lifecycle."""
    return [
        f"--kubeconfig={files.controller_manager}",
        f"--controllers={controllers}",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--root-ca-file={files.authority}",
        "--leader-elect=false",  # there is one; a restart need not wait for the old one's lease
        "--secure-port=0",
        # The default 20 requests a second make a Job of a thousand pods the bottleneck of every test.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]


def scheduler(files: Files, qps: float) -> list[str]:
    """kube-scheduler with its own configuration file; `qps` bounds its client's requests a second."""
    config = files.directory / "kube-scheduler.yaml"
    # The file wins over --kube-api-qps, so client and limits stand here together.
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaderElect: false}\n"
        f"clientConnection: {{kubeconfig: {files.scheduler}, qps: {qps}, burst: {int(qps * 2)}}}\n"
    )
    return [f"--config={config}", "--secure-port=0"]
