"""The commands `kubelet` and `nodes`."""

import argparse
import asyncio
import logging
import os
import signal
import time
from contextlib import closing
from pathlib import Path

import uvloop

from eclectus_e2e.paths import check_socket_path
from eclectus_e2e.testbed.kubelet import agent
from eclectus_e2e.testbed.kubelet.api import Access, read_access
from eclectus_e2e.testbed.kubelet.control import control_socket
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, NodeSpec, default_nodes, nodes_text, read_nodes
from eclectus_e2e.testbed.kubelet.pod_times import PodTimes


def kubelet(arguments: list[str]) -> int:
    """Simulate the kubelets of all nodes of a file until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser("eclectus_e2e kubelet", description=kubelet.__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--nodes", type=Path, required=True, help="nodes file (see the command `nodes`)")
    parser.add_argument("--control", type=Path, required=True, help="path of the control socket to create")
    parser.add_argument(
        "--pod-times", type=Path, metavar="FILE", help="append a JSON line for every pod that ended"
    )
    parser.add_argument("--deregister", action="store_true", help="delete the nodes at the end")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    access, nodes = read_access(options.kubeconfig), read_nodes(options.nodes)
    check_socket_path(options.control)
    os.umask(0o077)  # socket and file of pod times are never readable by others
    uvloop.run(_run(access, nodes, options))
    return 0


def nodes(arguments: list[str]) -> int:
    """Print the default nodes file."""
    parser = argparse.ArgumentParser("eclectus_e2e nodes", description=nodes.__doc__)
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="random seed for names and labels")
    print(nodes_text(default_nodes(parser.parse_args(arguments).seed)), end="")
    return 0


async def _run(access: Access, nodes: list[NodeSpec], options: argparse.Namespace) -> None:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    # Pods end by the loop's clock, so their times come from it too: by the wall clock, which may be
    # adjusted, some would end too early.
    unix_at_zero = time.time() - loop.time()
    with closing(PodTimes(lambda: unix_at_zero + loop.time(), options.pod_times)) as pod_times:
        async with (
            agent.running(access, nodes, pod_times, deregister=options.deregister) as running,
            control_socket(running, options.control),
        ):
            logging.info("%d nodes registered; control socket %s", len(nodes), options.control)
            await stopped.wait()
