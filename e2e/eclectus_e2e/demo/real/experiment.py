"""The act on real nodes from beginning to end: its cluster, its files, its tables."""

from pathlib import Path

import msgspec
import uvloop
from rich.console import Console

from eclectus_e2e.demo.real.objects import POOL, VALUES, WORKERS
from eclectus_e2e.demo.real.observations import Observations
from eclectus_e2e.demo.real.plan import SYSTEM, Plan
from eclectus_e2e.demo.real.plots import draw
from eclectus_e2e.demo.real.report import RealReport, report
from eclectus_e2e.demo.real.tables import tables
from eclectus_e2e.demo.real.timeline import Timeline
from eclectus_e2e.demo.screen import PlainScreen
from eclectus_e2e.errors import MachineError
from eclectus_e2e.testbed.chart import NAMESPACE
from eclectus_e2e.testbed.images import archives
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.kubelet.api import Api, read_access
from eclectus_e2e.testbed.realnodes import needs, nodes
from eclectus_e2e.testbed.realnodes.nodes import RealNodes
from eclectus_e2e.testbed.realnodes.place import NodeSpec
from eclectus_e2e.testbed.release import Release

IMAGES = ("pause", "scheduler", "operator", "unit")


def act_on_real_nodes(plan: Plan, folder: Path, console: Console) -> RealReport:
    """Play it; writes real.json and real.png into the folder. MachineError says what the machine lacks."""
    if reason := needs.why_not() or archives.why_not():
        raise MachineError(reason)
    shown = PlainScreen(console)
    specs = [NodeSpec(SYSTEM, 1.0, {POOL: "system"})]
    specs += [NodeSpec(name, quota, {POOL: WORKERS}) for name, quota in plan.quotas.items()]
    shown.say("building images, where they are not there yet")
    images = [archives.archive(name) for name in IMAGES]
    shown.say(f"starting a control plane, {len(specs)} real nodes and the chart with its operator")
    with nodes.started(folder / "cluster", specs, images) as real:
        _install(real)
        noted = uvloop.run(_play(real, plan, shown))
    found = report(noted, plan)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "real.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    draw(noted, plan, folder / "real.png")
    for table in tables(found):
        console.print(table)
    return found


def _install(real: RealNodes) -> None:
    _kubectl(real)("create", "namespace", NAMESPACE)
    Release(real.plane.kubeconfig).install(VALUES)


async def _play(real: RealNodes, plan: Plan, shown: PlainScreen) -> Observations:
    cpu = _kubectl(real).get("node", next(iter(plan.quotas)))["status"]["allocatable"]["cpu"]
    async with Api(read_access(real.plane.kubeconfig)) as api:
        return await Timeline(api, plan, cpu, real.set_quota, shown.say).play()


def _kubectl(real: RealNodes) -> Kubectl:
    return Kubectl(real.plane.binaries, real.plane.kubeconfig)
