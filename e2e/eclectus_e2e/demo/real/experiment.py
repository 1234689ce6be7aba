"""The experiment on real nodes: real kubelets and containers on this machine, with hidden CPU quotas."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop
from rich.table import Table

from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.real.objects import POOL, VALUES, WORKERS
from eclectus_e2e.demo.real.observations import Observations
from eclectus_e2e.demo.real.plan import SYSTEM, Plan, real_plan
from eclectus_e2e.demo.real.plots import draw
from eclectus_e2e.demo.real.report import RealReport, make_report
from eclectus_e2e.demo.real.tables import tables
from eclectus_e2e.demo.real.timeline import Timeline
from eclectus_e2e.demo.screen import Screen
from eclectus_e2e.errors import MachineError
from eclectus_e2e.testbed.chart import NAMESPACE
from eclectus_e2e.testbed.images import archives
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.kubelet.api import Api, read_access
from eclectus_e2e.testbed.realnodes import nodes, requirements
from eclectus_e2e.testbed.realnodes.layout import NodeSpec
from eclectus_e2e.testbed.realnodes.nodes import RealNodes
from eclectus_e2e.testbed.release import Release

IMAGES = ("pause", "scheduler", "operator", "unit")


class RealExperiment(Experiment[Plan, RealNodes, Observations, RealReport]):
    """Eclectus against kube-scheduler on four real nodes."""

    report_file, picture_file = "real.json", "real.png"

    def __init__(self, seed: int, pairs: int | None, *, quick: bool = False) -> None:
        self._seed, self._pairs, self._quick = seed, pairs, quick

    def plan(self) -> Plan:
        """Quotas and streams. Raises MachineError with what the machine lacks."""
        if reason := requirements.unmet_requirement() or archives.unmet_requirement():
            raise MachineError(reason)
        return real_plan(self._seed, self._pairs, quick=self._quick)

    @contextmanager
    def environment(self, plan: Plan, directory: Path) -> Iterator[RealNodes]:
        """Control plane, real nodes, and the chart with its operator; missing images are built."""
        specs = [NodeSpec(SYSTEM, 1.0, {POOL: "system"})]
        specs += [NodeSpec(name, quota, {POOL: WORKERS}) for name, quota in plan.quotas.items()]
        images = [archives.archive(name) for name in IMAGES]
        with nodes.started(directory, specs, images) as real:
            _kubectl(real)("create", "namespace", NAMESPACE)
            Release(real.plane.kubeconfig).install(VALUES)
            yield real

    def run(self, environment: RealNodes, plan: Plan, shown: Screen) -> Observations:
        """Probes, streams and co-location trials."""
        return uvloop.run(_run(environment, plan, shown))

    def report(self, plan: Plan, observations: Observations) -> RealReport:
        """How the quotas were learned, response times, and what probes took."""
        return make_report(plan, observations)

    def plot(self, plan: Plan, observations: Observations, report: RealReport, file: Path) -> None:
        """Learned speeds against quotas, the response time of each pod, and the ratios of the pairs."""
        draw(plan, observations, report, file)

    def tables(self, plan: Plan, observations: Observations, report: RealReport) -> Iterator[Table | str]:
        """The same for each set of quotas, then probes and co-location trials."""
        return tables(report)


async def _run(real: RealNodes, plan: Plan, shown: Screen) -> Observations:
    cpu = _kubectl(real).get("node", next(iter(plan.quotas)))["status"]["allocatable"]["cpu"]
    async with Api(read_access(real.plane.kubeconfig)) as api:
        return await Timeline(api, plan, cpu, real.set_quota, shown.say).run()


def _kubectl(real: RealNodes) -> Kubectl:
    return Kubectl(real.plane.binaries, real.plane.kubeconfig)
