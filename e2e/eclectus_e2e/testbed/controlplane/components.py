"""The command lines of etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

Every flag that differs from the default has a comment with the reason, or is needed to connect the parts.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eclectus_e2e.testbed.controlplane.certificates import Authority, KeyPair
from eclectus_e2e.testbed.controlplane.kubeconfig import write_kubeconfig, write_token_kubeconfig

LOOPBACK = "127.0.0.1"
FRONT_PROXY = "front-proxy-client"  # as which the API server asks aggregated ones
POD_GROUPS_VERSION = "scheduling.k8s.io/v1beta1"  # of Kubernetes 1.37


@dataclass(frozen=True)
class Ports:
    """The ports of one control plane: etcd listens on loopback, the API server on `address`."""

    etcd_client: int
    etcd_peer: int
    apiserver: int
    address: str = LOOPBACK

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return f"https://{self.address}:{self.apiserver}"


@dataclass(frozen=True)
class Clients:
    """Creates kubeconfigs for one API server, each with its own client certificate."""

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
    front_proxy_authority: Path
    front_proxy_client: KeyPair
    service_account_key: Path
    admin: Path
    controller_manager: Path
    tokens: Path
    load: Path


def write_files(directory: Path, ports: Ports) -> Files:
    """Create a new certificate authority, the certificates and the kubeconfigs."""
    authority = Authority(directory / "certificates", ports.address)
    clients = Clients(directory, authority, ports.url)
    # Of its own: whom it certifies may say in headers who asks.
    front_proxy = Authority(directory / "certificates" / "front-proxy")
    tokens, token = directory / "tokens.csv", secrets.token_hex()
    tokens.touch(mode=0o600)
    tokens.write_text(f'{token},eclectus-e2e-load,load,"system:masters"\n')
    load = directory / "load.kubeconfig"
    return Files(
        directory=directory,
        clients=clients,
        authority=authority.certificate,
        server=authority.issue("server", "eclectus-e2e-server", server=True),
        etcd_client=authority.issue("etcd-client", "kube-apiserver"),
        kubelet_client=authority.issue("kubelet-client", "eclectus-e2e-apiserver", "system:masters"),
        front_proxy_authority=front_proxy.certificate,
        front_proxy_client=front_proxy.issue("client", FRONT_PROXY),
        service_account_key=authority.signing_key("service-account"),
        admin=clients.kubeconfig("admin", "eclectus-e2e-admin", "system:masters"),
        controller_manager=clients.kubeconfig("kube-controller-manager", "system:kube-controller-manager"),
        tokens=tokens,
        load=write_token_kubeconfig(load, ports.url, authority.certificate, token),
    )


def etcd(files: Files, ports: Ports) -> list[str]:
    """Arguments of etcd, one member.

    TLS on both ports: with an open etcd any local user could bypass RBAC.
    """
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
        "--unsafe-no-fsync",  # the data is deleted with the cluster
        "--quota-backend-bytes=8589934592",  # benchmarks write more than the default 2 GiB
        "--log-level=warn",
    ]


def apiserver(
    files: Files,
    ports: Ports,
    *,
    taint_nodes_by_condition: bool,
    audited: str | None,
    pod_groups: bool,
    disabled_features: Sequence[str],
    routes_to_endpoints: bool,
) -> list[str]:
    """Arguments of kube-apiserver, with RBAC enabled.

    Without `taint_nodes_by_condition` new nodes do not get the not-ready taint. `audited`: the namespace
    of ServiceAccounts whose requests are written to `audit_log`. `pod_groups`: serve PodGroups (KEP-4671).
    `routes_to_endpoints`: how webhooks and aggregated APIs are reached, see PlaneOptions.
    """
    arguments = [
        f"--etcd-servers=https://127.0.0.1:{ports.etcd_client}",
        f"--etcd-cafile={files.authority}",
        f"--etcd-certfile={files.etcd_client.certificate}",
        f"--etcd-keyfile={files.etcd_client.key}",
        f"--secure-port={ports.apiserver}",
        f"--bind-address={ports.address}",
        f"--advertise-address={ports.address}",  # default: a network interface's; there may be none
        f"--client-ca-file={files.authority}",
        f"--token-auth-file={files.tokens}",
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
        "--kubelet-preferred-address-types=InternalIP",  # node names are not in DNS
        f"--enable-aggregator-routing={str(routes_to_endpoints).lower()}",
        *_aggregation(files),
    ]
    if ports.address == LOOPBACK:
        arguments.append(
            "--endpoint-reconciler-type=none"
        )  # an Endpoints object must not contain a loopback address
    if not taint_nodes_by_condition:
        arguments.append("--disable-admission-plugins=TaintNodesByCondition")
    if pod_groups:
        arguments += ["--feature-gates=GenericWorkload=true", f"--runtime-config={POD_GROUPS_VERSION}=true"]
    arguments += _without(disabled_features)
    return arguments + ([] if audited is None else _audit(files.directory, audited))


def _aggregation(files: Files) -> list[str]:
    """What an APIService needs that a local process serves."""
    return [
        f"--requestheader-client-ca-file={files.front_proxy_authority}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-uid-headers=X-Remote-Uid",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={files.front_proxy_client.certificate}",
        f"--proxy-client-key-file={files.front_proxy_client.key}",
    ]


def _without(features: Sequence[str]) -> list[str]:
    return [f"--feature-gates={name}=false" for name in features]


def audit_log(directory: Path) -> Path:
    """The audit log of a control plane in `directory`: one JSON object per line."""
    return directory / "audit.log"


def _audit(directory: Path, namespace: str) -> list[str]:
    policy = directory / "audit-policy.yaml"
    # Requests of other users are not needed, and would be most of the file.
    policy.write_text(
        "apiVersion: audit.k8s.io/v1\n"
        "kind: Policy\n"
        "omitStages: [RequestReceived]\n"
        "rules:\n"
        f"  - {{level: Metadata, userGroups: ['system:serviceaccounts:{namespace}']}}\n"
        "  - {level: None}\n"
    )
    return [f"--audit-policy-file={policy}", f"--audit-log-path={audit_log(directory)}"]


def controller_manager(files: Files, controllers: str, disabled_features: Sequence[str] = ()) -> list[str]:
    """Arguments of kube-controller-manager; `controllers` is its own flag."""
    return [
        *_without(disabled_features),
        f"--kubeconfig={files.controller_manager}",
        f"--controllers={controllers}",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--root-ca-file={files.authority}",
        "--leader-elect=false",  # there is one instance; a restarted one need not wait for the lease
        "--secure-port=0",
        # With the default of 20 requests per second, creating the pods of a large Job would dominate a test.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]


def scheduler_account(namespace: str, name: str) -> dict[str, Any]:
    """A ServiceAccount with the rights of the user `system:kube-scheduler`, to be applied."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    roles = ("system:kube-scheduler", "system:volume-scheduler")
    rbac = "rbac.authorization.k8s.io"
    bindings = [
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{name}-account:{role}"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        }
        for role in roles
    ]
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace},
    }
    return {"apiVersion": "v1", "kind": "List", "items": [account, *bindings]}


def scheduler(files: Files, kubeconfig: Path, qps: float) -> list[str]:
    """Arguments of kube-scheduler, and its configuration file; `qps` limits its requests per second."""
    config = files.directory / "kube-scheduler.yaml"
    # The file overrides --kube-api-qps, so the limits are in the file.
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaderElect: false}\n"
        f"clientConnection: {{kubeconfig: {kubeconfig}, qps: {qps}, burst: {int(qps * 2)}}}\n"
    )
    return [f"--config={config}", "--secure-port=0"]
