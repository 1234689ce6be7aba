"""The table of workloads: what a scenario may write below `workload:`. To add one: a file and a line."""

from __future__ import annotations

from eclectus.sim.dags import Dags
from eclectus.sim.gavel import Gavel
from eclectus.sim.jobtrace import Jobtrace
from eclectus.sim.kubernetes import Kubernetes
from eclectus.sim.livetape import Tape
from eclectus.sim.openb import Openb
from eclectus.sim.poisson import Poisson
from eclectus.sim.workload import Workload

WORKLOADS: dict[str, type[Workload]] = {
    "poisson": Poisson,
    "jobtrace": Jobtrace,
    "dags": Dags,
    "openb": Openb,
    "gavel": Gavel,
    "kubernetes": Kubernetes,
    "tape": Tape,
}
