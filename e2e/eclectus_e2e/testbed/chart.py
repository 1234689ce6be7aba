"""Renders the chart, installs it without its pods, and issues tokens of its ServiceAccounts.

Scheduler and operator then run as processes beside the cluster with exactly the permissions that the chart
grants, so that tests fail when a permission is missing.
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
TOKEN_SECONDS = 6 * 3600  # longer than the longest run; the API server accepts no less than ten minutes

Values = Mapping[str, Any]
Object = dict[str, Any]


@dataclass(frozen=True)
class Installed:
    """An installed release: namespace, ServiceAccount and configuration file of its scheduler.

    `operator` is the operator's Deployment; None when it is not enabled.
    """

    namespace: str
    service_account: str
    configuration: str
    operator: Object | None = None

    @property
    def user(self) -> str:
        """The user name of the scheduler's ServiceAccount."""
        return f"system:serviceaccount:{self.namespace}:{self.service_account}"

    @property
    def operator_account(self) -> str:
        """The operator's ServiceAccount."""
        return cast(str, self._operator_pod["serviceAccountName"])

    @property
    def operator_user(self) -> str:
        """The user name of the operator's ServiceAccount."""
        return f"system:serviceaccount:{self.namespace}:{self.operator_account}"

    @property
    def operator_arguments(self) -> list[str]:
        """The arguments of the operator's container."""
        return cast(list[str], self._operator_pod["containers"][0]["args"])

    @property
    def _operator_pod(self) -> Object:
        if self.operator is None:
            raise UsageError("the release has no operator: install it with operator.enabled=true")
        return cast(Object, self.operator["spec"]["template"]["spec"])


def render(values: Values | None = None, namespace: str = NAMESPACE) -> list[Object]:
    """Every object of the chart, including test hooks.

    Raises UsageError for invalid values, with the path of each.
    """
    with helm.Chart.load(CHART) as chart:
        try:
            templates = chart.render(dict(values or {}), name=RELEASE, namespace=namespace)
        except (helm.HelmValuesError, helm.HelmRenderError) as error:
            raise UsageError(str(error).strip()) from error
    texts = (templates[name] for name in sorted(templates) if name.endswith(".yaml"))
    return [content for text in texts for content in yaml.safe_load_all(text) if content]


def install(kubeconfig: Path, namespace: str = NAMESPACE, values: Values | None = None) -> Installed:
    """Install the chart with no replicas; the caller runs the scheduler as a process.

    Raises UsageError for invalid values and for a release that exists already, and helm's errors.
    """
    given = dict(values or {})
    for part in ("scheduler", "operator"):
        given[part] = {**given.get(part, {}), "replicas": 0}
    objects = render(given, namespace)
    with helm.Chart.load(CHART) as chart, _config(kubeconfig, namespace) as config:
        if any(each["name"] == RELEASE for each in config.list()):
            # Never upgrade: on an existing cluster the release may be in use.
            raise UsageError(f"{namespace} already has a release {RELEASE}: choose another namespace")
        config.install(chart, RELEASE, given, namespace=namespace, create_namespace=True)
    account = deployment(objects, "scheduler")["spec"]["template"]["spec"]["serviceAccountName"]
    operator = deployment(objects, "operator") if given["operator"].get("enabled") else None
    return Installed(namespace, account, configuration(objects), operator)


def uninstall(kubeconfig: Path, namespace: str = NAMESPACE) -> None:
    """Uninstall the release; helm keeps its namespace."""
    with _config(kubeconfig, namespace) as config:
        config.uninstall(RELEASE)


def configuration(objects: list[Object]) -> str:
    """The SchedulerConfiguration file in the chart's ConfigMap."""
    maps = (each for each in objects if each["kind"] == "ConfigMap")
    (found,) = (each for each in maps if "config.yaml" in each["data"])
    return cast(str, found["data"]["config.yaml"])


def service_account_kubeconfig(
    kubeconfig: Path, directory: Path, namespace: str, name: str, seconds: int = TOKEN_SECONDS
) -> Path:
    """Write a kubeconfig into `directory` whose only credential is a new token of a ServiceAccount.

    The token comes from the TokenRequest API, called with the rights of `kubeconfig`. It is valid for
    `seconds` and is not renewed.
    """
    from kubernetes.client import ApiClient, Configuration, CoreV1Api
    from kubernetes.config import load_kube_config

    settings: Any = Configuration()
    settings.proxy = None  # connect directly, whatever proxy variables the environment has
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
        response = core.create_namespaced_service_account_token(name, namespace, body)
    path = directory / f"{namespace}.{name}.kubeconfig"
    return write_token_kubeconfig(path, settings.host, Path(settings.ssl_ca_cert), response.status.token)


def deployment(objects: list[Object], component: str) -> Object:
    """The Deployment of a component: `scheduler` or `operator`."""
    label = {"app.kubernetes.io/component": component}
    deployments = [each for each in objects if each["kind"] == "Deployment"]
    (found,) = [each for each in deployments if label.items() <= each["metadata"]["labels"].items()]
    return found


def _config(kubeconfig: Path, namespace: str) -> helm.Config:
    return helm.Config(kubeconfig_path=kubeconfig, namespace=namespace)
