"""Argo Workflows: its controller built from its Go module, and run as a process beside the cluster.

What its release installs is applied from the manifests in the module, but its server and the Deployment,
whose container is the process here.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from eclectus_e2e.paths import ARGO_MODULE
from eclectus_e2e.testbed import chart, processes
from eclectus_e2e.testbed.controlplane.build import GoPrograms, binaries
from eclectus_e2e.testbed.controlplane.modules import downloaded
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.testbed.kubectl import Kubectl

Object = dict[str, Any]
MODULE = "github.com/argoproj/argo-workflows/v4"
NAMESPACE = ACCOUNT = NAME = "argo"
PROGRAM = "workflow-controller"
CONFIGURATION = "workflow-controller-configmap"
IMAGE = "quay.io/argoproj/argoexec:v4.0.5"  # named in pods; nothing pulls it
MANIFESTS = ("base/crds/full", "cluster-install-no-crds/workflow-controller-rbac")
BUILD = GoPrograms(
    title="Argo Workflows",
    build_time="3 minutes on two idle cores, longer on a busy machine",
    folder="argo",
    packages=1100,
    module=ARGO_MODULE,
    programs={PROGRAM: f"{MODULE}/cmd/{PROGRAM}"},
)


@contextmanager
def running(
    plane: ControlPlane, qps: float, environment: Mapping[str, str], flags: tuple[str, ...] = ()
) -> Iterator[None]:
    """Its controller on a control plane, with the rights of its ServiceAccount; `qps` limits its client.

    Raises BuildError, StartError, or UsageError.
    """
    program = binaries(BUILD) / PROGRAM
    kubectl = Kubectl(plane.binaries, plane.kubeconfig)
    _install(kubectl)
    account = chart.service_account_kubeconfig(plane.kubeconfig, plane.directory, NAMESPACE, ACCOUNT)
    command = [*_env({"LEADER_ELECTION_DISABLE": "true", **environment}), str(program)]
    command += [f"--kubeconfig={account}", f"--namespace={NAMESPACE}", f"--executor-image={IMAGE}"]
    command += [f"--qps={qps:g}", f"--burst={2 * qps:g}", *flags]
    process = processes.start(NAME, command, plane.directory, dies_with_caller=True)
    try:
        yield
    finally:
        process.stop()


def _env(variables: Mapping[str, str]) -> list[str]:
    """What sets variables before the program that follows."""
    return [shutil.which("env") or "/usr/bin/env", *(f"{name}={value}" for name, value in variables.items())]


def _install(kubectl: Kubectl) -> None:
    manifests = downloaded(ARGO_MODULE, MODULE).folder / "manifests"
    found = [each for folder in MANIFESTS for each in objects(manifests / folder)]
    given = {"apiVersion": "v1", "kind": "List", "items": [*surroundings(), *map(in_namespace, found)]}
    kubectl("apply", "--server-side", "--filename=-", given=given)
    crds = [f"crd/{each['metadata']['name']}" for each in found if each["kind"] == "CustomResourceDefinition"]
    kubectl("wait", "--for=condition=Established", "--timeout=60s", *crds)


def objects(folder: Path) -> Iterator[Object]:
    """The objects of a folder of manifests; those of kustomize are none."""
    for file in sorted(folder.glob("*.yaml")):
        found = (each for each in yaml.safe_load_all(file.read_text()) if each)
        yield from (each for each in found if "kustomize" not in each["apiVersion"])


def surroundings() -> list[Object]:
    """Its namespace, ServiceAccount and configuration, which has no metrics: a port could be in use."""
    metadata = {"namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata | {"name": ACCOUNT}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata | {"name": CONFIGURATION},
            "data": {"config": json.dumps({"metricsConfig": {"enabled": False}})},  # JSON is YAML
        },
    ]


def in_namespace(given: Object) -> Object:
    """An object and the subjects that it names, in the namespace where kustomize puts them."""
    changed = dict(given)
    if given["kind"] in ("Role", "RoleBinding"):
        changed["metadata"] = given["metadata"] | {"namespace": NAMESPACE}
    if "subjects" in given:
        changed["subjects"] = [each | {"namespace": NAMESPACE} for each in given["subjects"]]
    return changed
