"""Workloads: generators and trace readers, one format a file, and the table of all.

To add one: write a module and add a line to the table.
"""

from eclectus.sim.workloads.dags import Dags
from eclectus.sim.workloads.gavel import Gavel
from eclectus.sim.workloads.jobtrace import Jobtrace
from eclectus.sim.workloads.kubernetes import Kubernetes
from eclectus.sim.workloads.live_tape import Tape
from eclectus.sim.workloads.openb import Openb
from eclectus.sim.workloads.poisson import Poisson
from eclectus.sim.workloads.workload import Workload

WORKLOADS: dict[str, type[Workload]] = {
    "poisson": Poisson,
    "jobtrace": Jobtrace,
    "dags": Dags,
    "openb": Openb,
    "gavel": Gavel,
    "kubernetes": Kubernetes,
    "tape": Tape,
}
