"""The command `upstream`."""

import argparse
import os
import shutil
import sys

from eclectus_e2e.demo import environment
from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed import product
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, default_nodes
from eclectus_e2e.upstream.known_failures import KNOWN_FAILURES
from eclectus_e2e.upstream.program import e2e_test
from eclectus_e2e.upstream.results import is_good, summary
from eclectus_e2e.upstream.run import run_specs
from eclectus_e2e.upstream.system_pods import create_system_pods

FOLDER = CHECKOUT / "build" / "upstream"
FOCUS = r"\[sig-scheduling\] SchedulerPreemption"
# One in each zone. The spec of asynchronous preemption looks at 15 pods a node, one a second, and has 80 s.
NODES = {1.0: 3}  # speed: number
# Upstream's pods name no scheduler. With the chart the account may claim the name (a Lease for each).
VALUES = {
    "config": {"profiles": [{"schedulerName": "default-scheduler", "relieve": {"policy": "preemption"}}]}
}


def upstream(arguments: list[str]) -> int:
    """Run Kubernetes' own [sig-scheduling] specs with Eclectus as the scheduler of a local control plane.

    Exit code 0 when every spec that ran passed, apart from known failures, which are printed with their
    reason. Logs are kept in build/upstream.
    """
    parser = argparse.ArgumentParser("eclectus_e2e upstream", description=upstream.__doc__)
    parser.add_argument("--focus", default=FOCUS, help="regular expression of names (default: %(default)s)")
    parser.add_argument(
        "--scheduler",
        choices=[ECLECTUS, KUBE_SCHEDULER],
        default=ECLECTUS,
        help="kube-scheduler shows whether a failure is the scheduler's or the fake nodes'",
    )
    options = parser.parse_args(arguments)
    program = e2e_test()
    directory = FOLDER / "cluster"
    with environment.started(directory, default_nodes(DEFAULT_SEED, NODES), values=VALUES) as cluster:
        _start_scheduler(cluster, options.scheduler)
        kubectl = Kubectl(cluster.plane.binaries, cluster.plane.kubeconfig)
        create_system_pods(kubectl, [node.name for node in cluster.nodes])
        print(f"running the specs; their log: {os.path.relpath(FOLDER / 'e2e.test.log')}", file=sys.stderr)
        known = KNOWN_FAILURES[options.scheduler]
        try:
            judged = run_specs(program, cluster.plane.kubeconfig, FOLDER, options.focus, known)
        finally:  # the directory is deleted with the cluster
            shutil.copytree(directory / "logs", FOLDER / "logs", dirs_exist_ok=True)
    print(summary(judged))
    return 0 if is_good(judged) else 1


def _start_scheduler(cluster: Environment, name: str) -> None:
    """Start the scheduler of pods that name none; it is stopped with the cluster."""
    if name == KUBE_SCHEDULER:
        cluster.plane.start_kube_scheduler()
    else:
        product.start_scheduler(cluster.product, dies_with_caller=True)
