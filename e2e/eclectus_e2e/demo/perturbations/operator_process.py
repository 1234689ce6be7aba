"""The operator as a process beside the cluster, under the chart's account, and the NodeProbes it serves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eclectus.api.names import API_VERSION, NODE_PROBES_PATH, PROBED_LABEL
from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.perturbations.plan import BENCHMARK, RESERVED
from eclectus_e2e.testbed import product
from eclectus_e2e.testbed.kubelet.api import Api

UNITS = 30  # of the benchmark in a probe: about three seconds at speed 1
MILLICORES = 1000  # notional requests of a probe
PER_HOUR = 3600  # the most that one NodeProbe may ask for; the experiment is short,
COUNT = 3  # so it creates three


@contextmanager
def running(environment: Environment) -> Iterator[None]:
    """Run the operator for a `with` block; it leads when the block begins. Raises StartError."""
    # The chart's --look-seconds suits a cluster that lives for longer.
    process = product.start_operator(environment.product, ["--look-seconds=5"], dies_with_caller=True)
    try:
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
