"""The operator as a process beside the cluster, under the chart's account, and the NodeProbes it serves."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eclectus.api.names import API_VERSION, NODE_PROBES_PATH, PROBED_LABEL
from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.perturbations.plan import BENCHMARK, RESERVED
from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.controlplane.endpoint import free_ports
from eclectus_e2e.testbed.kubelet.api import Api
from eclectus_e2e.testbed.processes import log_path, log_tail, start, wait_for

UNITS = 30  # of the benchmark in a probe: about three seconds at speed 1
MILLICORES = 1000  # notional requests of a probe
PER_HOUR = 3600  # the most that one NodeProbe may ask for; the experiment is short,
COUNT = 3  # so it creates three
_PROCESS = "operator"
_READY_SECONDS = 60.0


@contextmanager
def running(environment: Environment) -> Iterator[None]:
    """Run the operator for a `with` block; it leads when the block begins. Raises StartError."""
    directory, installed = environment.plane.directory, environment.installed
    kubeconfig = chart.service_account_kubeconfig(
        environment.plane.kubeconfig, directory, installed.namespace, installed.operator_account
    )
    (port,) = free_ports(1)
    # It replaces the chart's arguments that suit a pod in a cluster which lives for longer.
    ours = ["--address=127.0.0.1", f"--port={port}", "--look-seconds=5", f"--kubeconfig={kubeconfig}"]
    replaced = tuple(each.split("=")[0] for each in ours)
    given = [each for each in installed.operator_arguments if not each.startswith(replaced)]
    program = [sys.executable, "-m", "eclectus_operator", *given, *ours]
    process = start(_PROCESS, program, directory, dies_with_caller=True)
    log = log_path(directory, _PROCESS)
    try:
        wait_for(lambda: "leading" in log.read_text() or not process.alive, _READY_SECONDS)
        if not process.alive:
            raise StartError(f"the operator did not start\n{log_tail(directory, _PROCESS)}")
        yield
    finally:
        process.stop()


async def create_node_probes(api: Api) -> None:
    """Ask for as many probes as possible of the nodes with the label PROBED_LABEL."""
    for number in range(COUNT):
        await api.request("POST", NODE_PROBES_PATH, node_probe(f"demo-{number}"))


def node_probe(name: str) -> dict[str, Any]:
    """A NodeProbe of the experiment."""
    limits = {"perHour": PER_HOUR, "leastPerHour": PER_HOUR // 2, "running": 3, "nodeIntervalSeconds": 0}
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeProbe",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {PROBED_LABEL: "true"},
            "tolerations": [{**RESERVED, "operator": "Exists"}],
            "classes": [{"name": BENCHMARK, "unit": {"kind": "cpu", "units": UNITS}}],
            "limits": limits,
            "deadlines": {"schedulingSeconds": 5, "runningSeconds": 10, "deletingSeconds": 5},
        },
    }
