"""The chart on a cluster: render it, install it without its pods, speak with its ServiceAccount's token.

The scheduler then runs as a process beside the cluster under exactly the permissions that the chart
grants, so that a verb the chart forgets fails whatever needs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import helm_python as helm
import yaml

from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed.controlplane.kubeconfig import write_token_kubeconfig

RELEASE = "eclectus"
NAMESPACE = "eclectus-system"
TOKEN_SECONDS = 6 * 3600  # outlives the longest run; ten minutes is the least the API server gives

Values = Mapping[str, Any]
Object = dict[str, Any]


@dataclass(frozen=True)
class Installed:
    """A release: where it is, its ServiceAccount, and the configuration file it gives its scheduler.

    `operator` is the operator's Deployment, where the release has one.
    """

    namespace: str
    service_account: str
    configuration: str
    operator: Object | None = None

    @property
    def user(self) -> str:
        """The user name that the API server knows the scheduler by."""
        return f"system:serviceaccount:{self.namespace}:{self.service_account}"

    @property
    def operator_account(self) -> str:
        """The operator's ServiceAccount."""
        return cast(str, self._operator_pod["serviceAccountName"])

    @property
    def operator_user(self) -> str:
        """The user name that the API server knows the operator by."""
        return f"system:serviceaccount:{self.namespace}:{self.operator_account}"

    @property
    def operator_arguments(self) -> list[str]:
        """What the operator's container is started with."""
        return cast(list[str], self._operator_pod["containers"][0]["args"])

    @property
    def _operator_pod(self) -> Object:
        if self.operator is None:
            raise UsageError("the release has no operator: install it with operator.enabled")
        return cast(Object, self.operator["spec"]["template"]["spec"])


def render(values: Values | None = None, namespace: str = NAMESPACE) -> list[Object]:
    """Every object of the chart, test hooks included, as the API server would get them.

    Raises UsageError for values that the chart refuses, with the path of each.
    """
    with helm.Chart.load(CHART) as chart:
        try:
            templates = chart.render(dict(values or {}), name=RELEASE, namespace=namespace)
        except (helm.HelmValuesError, helm.HelmRenderError) as error:
            raise UsageError(str(error).strip()) from error
    texts = (templates[name] for name in sorted(templates) if name.endswith(".yaml"))
    return [content for text in texts for content in yaml.safe_load_all(text) if content]


def install(kubeconfig: Path, namespace: str = NAMESPACE, values: Values | None = None) -> Installed:
    """Install the chart with no replicas: whoever calls runs the scheduler as a process.

    Raises UsageError for values that the chart refuses and for a release that is there already; helm's
    own errors come through.
    """
    given = dict(values or {})
    for part in ("scheduler", "operator"):
        given[part] = {**given.get(part, {}), "replicas": 0}
    objects = render(given, namespace)
    with helm.Chart.load(CHART) as chart, _config(kubeconfig, namespace) as config:
        if any(each["name"] == RELEASE for each in config.list()):
            # Never an upgrade: on a borrowed cluster the release may be somebody's own, with pods.
            raise UsageError(f"{namespace} already has a release {RELEASE}: choose another namespace")
        config.install(chart, RELEASE, given, namespace=namespace, create_namespace=True)
    account = deployment(objects, "scheduler")["spec"]["template"]["spec"]["serviceAccountName"]
    operator = deployment(objects, "operator") if given["operator"].get("enabled") else None
    return Installed(namespace, account, configuration(objects), operator)


def uninstall(kubeconfig: Path, namespace: str = NAMESPACE) -> None:
    """Take the release away; its namespace stays, as helm leaves it."""
    with _config(kubeconfig, namespace) as config:
        config.uninstall(RELEASE)


def configuration(objects: list[Object]) -> str:
    """The SchedulerConfiguration file in the chart's ConfigMap."""
    (found,) = (each for each in objects if each["kind"] == "ConfigMap")
    return cast(str, found["data"]["config.yaml"])


def service_account_kubeconfig(
    kubeconfig: Path, directory: Path, namespace: str, name: str, seconds: int = TOKEN_SECONDS
) -> Path:
    """A kubeconfig in `directory` whose only credential is a fresh token of a ServiceAccount.

    Asked for through the TokenRequest API with the rights of `kubeconfig`. The token is valid for
    `seconds` and is not renewed.
    """
    from kubernetes.client import ApiClient, Configuration, CoreV1Api
    from kubernetes.config import load_kube_config

    settings: Any = Configuration()
    settings.proxy = None  # the address is the kubeconfig's; a proxy variable of the shell is not meant
    load_kube_config(str(kubeconfig), None, settings, False)  # type: ignore[no-untyped-call]
    if not settings.ssl_ca_cert:
        raise UsageError(f"{kubeconfig} names no certificate authority: add certificate-authority-data")
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    with ApiClient(settings) as client:
        core: Any = CoreV1Api(client)
        answer = core.create_namespaced_service_account_token(name, namespace, body)
    path = directory / f"{namespace}.{name}.kubeconfig"
    return write_token_kubeconfig(path, settings.host, Path(settings.ssl_ca_cert), answer.status.token)


def deployment(objects: list[Object], component: str) -> Object:
    """The Deployment of a part of the house: `scheduler` or `operator`."""
    label = {"app.kubernetes.io/component": component}
    deployments = [each for each in objects if each["kind"] == "Deployment"]
    (found,) = [each for each in deployments if label.items() <= each["metadata"]["labels"].items()]
    return found


def _config(kubeconfig: Path, namespace: str) -> helm.Config:
    return helm.Config(kubeconfig_path=kubeconfig, namespace=namespace)
