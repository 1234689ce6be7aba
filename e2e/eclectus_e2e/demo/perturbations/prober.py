"""The operator as a process beside the cluster, under the chart's account, and what it is asked to probe."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eclectus.api.names import API_VERSION, NODE_PROBE, NODE_PROBES_PATH, PROBED_LABEL
from eclectus_e2e.demo.environment import Ground
from eclectus_e2e.demo.perturbations.plan import BENCH, RESERVED
from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.controlplane import free_ports
from eclectus_e2e.testbed.kubelet.api import Api
from eclectus_e2e.testbed.processes import log_path, log_tail, start, wait_for

UNITS = 30  # of the benchmark in a probe: about three seconds at speed 1
MILLICORES = 1000  # that it stands for
PER_HOUR = 3600  # the most that one NodeProbe may ask for…
COUNT = 3  # …and so many ask, because the act is short
_PROCESS = "operator"
_READY_SECONDS = 60.0


@contextmanager
def running(ground: Ground) -> Iterator[None]:
    """The operator for the length of a block, leading when the block begins."""
    directory, installed = ground.plane.directory, ground.installed
    token = chart.service_account_kubeconfig(
        ground.plane.kubeconfig, directory, installed.namespace, installed.operator_account
    )
    (port,) = free_ports(1)
    # A process beside the cluster, alone, and with a short act ahead of it.
    ours = ["--address=127.0.0.1", f"--port={port}", "--look-seconds=5", f"--kubeconfig={token}"]
    taken = tuple(each.split("=")[0] for each in ours)
    given = [each for each in installed.operator_arguments if not each.startswith(taken)]
    program = [sys.executable, "-m", "eclectus_operator", *given, *ours]
    process = start(_PROCESS, program, directory, leashed=True)
    log = log_path(directory, _PROCESS)
    try:
        wait_for(lambda: "leading" in log.read_text() or not process.alive, _READY_SECONDS)
        if not process.alive:
            raise StartError(f"the operator did not start\n{log_tail(directory, _PROCESS)}")
        yield
    finally:
        process.stop()


async def ask(api: Api) -> None:
    """Probes for the nodes that have the label, the idle one among them, as often as may be."""
    for number in range(COUNT):
        await api.request("POST", NODE_PROBES_PATH, node_probe(f"demo-{number}"))


def node_probe(name: str) -> dict[str, Any]:
    """A NodeProbe of the act."""
    limits = {"perHour": PER_HOUR, "leastPerHour": PER_HOUR // 2, "running": 3, "nodeIntervalSeconds": 0}
    return {
        "apiVersion": API_VERSION,
        "kind": NODE_PROBE,
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {PROBED_LABEL: "true"},
            "tolerations": [{**RESERVED, "operator": "Exists"}],
            "classes": [{"name": BENCH, "unit": {"kind": "cpu", "units": UNITS}}],
            "limits": limits,
            "deadlines": {"schedulingSeconds": 5, "runningSeconds": 10, "deletingSeconds": 5},
        },
    }
