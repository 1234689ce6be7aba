"""The command `versions`."""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eclectus_e2e.errors import E2EError
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed import product
from eclectus_e2e.testbed.controlplane.build import GoPrograms
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.kubelet import handle
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.versions.checks import CHECKS
from eclectus_e2e.versions.table import VERSIONS

FOLDER = CHECKOUT / "build" / "versions"
_VALUES = {"operator": {"enabled": True, "dagJobs": {"enabled": True}}}
_NODES = [
    NodeSpec(name=f"node-{at}", group="all", speed=10.0, labels={"kubernetes.io/hostname": f"node-{at}"})
    for at in range(3)
]


def versions(arguments: list[str]) -> int:
    """Start each minor version of Kubernetes with the chart, scheduler and operator; try the main features.

    Compiles the control plane of a version on its first use. Exit code 0 when everything works on all.
    """
    parser = argparse.ArgumentParser("eclectus_e2e versions", description=versions.__doc__)
    parser.add_argument("minors", nargs="*", metavar="MINOR", help=f"of {', '.join(VERSIONS)} (default: all)")
    minors = parser.parse_args(arguments).minors
    if unknown := [minor for minor in minors if minor not in VERSIONS]:
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(VERSIONS)}")
    results = [_try(minor, VERSIONS[minor]) for minor in minors or VERSIONS]
    return 0 if all(results) else 1


def _try(minor: str, programs: GoPrograms) -> bool:
    """Print what works on one version; whether everything does."""
    try:
        with _started(FOLDER / minor, programs) as kubectl:
            print(f"{programs.version}: started, chart installed, scheduler and operator lead", flush=True)
            results = [_check(programs.version, name, kubectl) for name in CHECKS]
    except E2EError as error:
        print(f"{programs.version}: FAILED to start: {error}", flush=True)
        return False
    return all(results)


@contextmanager
def _started(directory: Path, programs: GoPrograms) -> Iterator[Kubectl]:
    with (
        ControlPlane.started(directory, PlaneOptions(programs=programs)) as plane,
        handle.started(directory, plane.kubeconfig, _NODES),
    ):
        installed = product.install(plane.kubeconfig, directory, _VALUES)
        product.start_scheduler(installed, dies_with_caller=True)
        product.start_operator(installed, dies_with_caller=True)
        yield Kubectl(plane.binaries, plane.kubeconfig)


def _check(version: str, name: str, kubectl: Kubectl) -> bool:
    began = time.monotonic()
    try:
        CHECKS[name](kubectl)
    except E2EError as error:
        print(f"{version}: FAILED: {name}: {error}", flush=True)
        return False
    print(f"{version}: {name} ({time.monotonic() - began:.1f} s)", flush=True)
    return True
