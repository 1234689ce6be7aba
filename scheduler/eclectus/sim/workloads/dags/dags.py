"""`workload: {dags: …}`: jobs that are graphs of stages, from files of several formats."""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, islice
from math import inf
from pathlib import Path
from typing import Annotated, Literal
from zlib import error as ZlibError  # noqa: N812 — the class, by its module's name

from eclectus.config.reading import camel
from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting
from eclectus.sim.base.distributions import Size
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.random_streams import endless, stream
from eclectus.sim.base.work import Arrival, Dag, Kind, Plan
from eclectus.sim.workloads.dags.alibaba import read_alibaba
from eclectus.sim.workloads.dags.dag_file import read_dags
from eclectus.sim.workloads.dags.tpch import read_tpch
from eclectus.sim.workloads.work_classes import Needs, load
from eclectus.sim.workloads.workload import Workload
from eclectus.sim.world.cluster import read_amounts

_ONLY = {"graphs": "tpch", "queries": "tpch", "size": "tpch", "cores": "tpch", "machine_memory": "alibaba"}


@dataclass(frozen=True)
class Dags(Workload):
    """Settings, and the stream they make."""

    file: Annotated[str, Setting("path of the jobs, from the scenario's folder; .gz is compressed")]
    format: Annotated[
        Literal["eclectus", "tpch", "alibaba"], Setting("what the file is", why="docs/dags.schema.json")
    ] = "eclectus"
    arrivals: Annotated[
        Literal["together", "poisson", "recorded"],
        Setting("all at 0, at random at a steady rate, or as on the record", why="no rate is made up"),
    ] = "together"
    rate: Annotated[
        float | None, Setting("poisson: jobs that arrive a second", unit="jobs/s", least=1e-9)
    ] = None
    load: Annotated[
        float | None, Setting("poisson, instead of rate: work that arrives over what can be done", least=1e-6)
    ] = None
    stretch: Annotated[
        float, Setting("recorded: factor on arrival times; 0.01 compresses", least=1e-9, most=1e9)
    ] = 1.0
    jobs: Annotated[
        int | None,
        Setting(
            "how many arrive, the file's over and over if it holds fewer; each once if left out", least=1
        ),
    ] = None
    sizes: Annotated[
        Size, Setting("how a task's size lies around the mean of its stage, which is 1 here")
    ] = field(default_factory=lambda: Size("deterministic"))
    classes: Annotated[
        Literal["job", "stage"],
        Setting(
            "what makes a class of tasks, for reports and learners: a job's name, or its and the stage's",
            why="reports of jobs by name; by stage where a learner shall not mix stages of unequal length",
        ),
    ] = "job"
    tasks: Annotated[Needs | None, Setting("tpch, alibaba: what every task asks for")] = None
    graphs: Annotated[str, Setting("tpch: path of the graphs, .yaml or .yaml.gz")] = ""
    queries: Annotated[tuple[str, ...], Setting("tpch: which, such as Q1; all if left out")] = ()
    size: Annotated[str, Setting("tpch: the size of the data, such as 50g")] = ""
    cores: Annotated[int | None, Setting("tpch: the column of maxCores, one for all", least=1)] = None
    machine_memory: Annotated[
        str, Setting("alibaba: memory of one of their machines; 0 asks for none", why="not on the record")
    ] = "0"

    def __post_init__(self) -> None:
        for name, owner in _ONLY.items():
            if self.format != owner and getattr(self, name) != getattr(type(self), name):
                raise SettingsError(camel(name), f"belongs to format: {owner}")
        if self.format == "tpch" and not (self.graphs and self.size and self.cores):
            raise SettingsError("graphs", "format: tpch needs graphs, size and cores")
        if self.format == "eclectus" and self.tasks is not None:
            raise SettingsError("tasks", "stages of this format say themselves what they ask for")
        if (self.arrivals == "poisson") != ((self.rate is None) != (self.load is None)):
            raise SettingsError("rate", "arrivals: poisson needs either rate or load, others take neither")
        if self.arrivals != "recorded" and self.stretch != 1.0:
            raise SettingsError("stretch", "belongs to arrivals: recorded")
        if self.sizes.mean is not None:
            raise SettingsError("sizes.mean", "stages bring their own means; leave it out")

    # -- what it brings --------------------------------------------------------------------------

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> Plan:
        """Read the file and check every job. Raises SettingsError naming what is wrong."""
        dags = self._read(folder)
        if not dags:
            raise SettingsError("file", f"{self.file} holds no job")
        several = list(islice(cycle(dags), self.jobs or len(dags)))
        counts, work = _totals(several)
        jobs_a_second = self._jobs_a_second(several, work, machines)
        rate = jobs_a_second / len(several)
        ends = self.arrivals != "poisson" or self.jobs is not None
        return Plan(
            mean_sizes={kind: work[kind] / count for kind, count in counts.items()},
            work_rates={kind: rate * total for kind, total in work.items()},
            tasks_a_second=rate * counts.total(),
            tasks=counts.total() if ends else None,
            measured=range(counts.total()) if self.arrivals == "together" else None,
            arrivals=partial(self._arrivals, tuple(several), jobs_a_second, self._spread(folder)),
        )

    def _jobs_a_second(
        self, dags: Sequence[Dag], work: Mapping[Kind, float], machines: Mapping[str, Machine]
    ) -> float:
        if self.arrivals == "recorded":
            times = self._recorded(dags)
            return len(times) / times[-1] if times[-1] else inf
        if self.arrivals == "together":
            return inf
        if self.rate is not None:
            return self.rate
        at_one, exact = load({kind: total / len(dags) for kind, total in work.items()}, machines)
        if not exact:
            raise SettingsError("load", "has no one meaning where stages find different machines; give rate")
        return (self.load or 0.0) / at_one

    def _spread(self, folder: Path) -> Size:
        """How sizes lie around a mean of 1."""
        try:
            return replace(self.sizes.within(folder), mean=1.0)
        except SettingsError as error:
            raise SettingsError(f"sizes.{error.path}", error.problem) from None

    def _recorded(self, dags: Sequence[Dag]) -> list[float]:
        """Arrival times from the first one on, ascending. Raises SettingsError."""
        if self.jobs is not None and len({dag.name for dag in dags}) < self.jobs:
            raise SettingsError("jobs", "is more than the file holds, and a record is not repeated")
        times = []
        for dag in dags:
            if dag.arrival is None:
                raise SettingsError("arrivals", f"{self.file} does not say when job {dag.name!r} arrived")
            times.append(dag.arrival)
        return sorted((at - min(times)) * self.stretch for at in times)

    # -- arrivals --------------------------------------------------------------------------------

    def _arrivals(
        self, dags: Sequence[Dag], jobs_a_second: float, spread: Size, seed: int
    ) -> Iterator[Arrival]:
        """Each job once, in an order drawn by the seed unless there is a record; poisson: for ever."""
        draw = spread.drawing(stream(seed, "sizes of stages"))
        for at, dag in self._times(dags, jobs_a_second, seed):
            sizes: list[float] = []
            for stage in dag.stages:
                sizes += (draw(stage.tasks) * stage.seconds).tolist()
            yield Arrival(at, dag.stages[0].kind, tuple(sizes), dag=dag)

    def _times(self, dags: Sequence[Dag], jobs_a_second: float, seed: int) -> Iterator[tuple[float, Dag]]:
        if self.arrivals == "recorded":
            by_time = sorted(dags, key=lambda dag: dag.arrival or 0.0)
            yield from zip(self._recorded(dags), by_time, strict=True)
            return
        order, gaps = stream(seed, "order of jobs"), stream(seed, "arrivals")
        gap = endless(lambda count: gaps.exponential(1.0, count))
        now, is_endless = 0.0, self.arrivals == "poisson" and self.jobs is None
        while True:
            for at in order.permutation(len(dags)).tolist():
                now += next(gap) / jobs_a_second
                yield now, dags[at]
            if not is_endless:
                return

    # -- the file --------------------------------------------------------------------------------

    def _read(self, folder: Path) -> list[Dag]:
        data = self._bytes(folder, "file", self.file)
        try:
            if self.format == "tpch":
                return self._read_tpch(data, folder)
            if self.format == "alibaba":
                memory = self._machine_bytes()
                return read_alibaba(data, machine_memory=memory, instead=self.tasks, by_stage=self._by_stage)
            return read_dags(data, by_stage=self._by_stage)
        except ValueError as error:
            raise SettingsError("file", f"{self.file}: {error}") from None

    def _read_tpch(self, data: bytes, folder: Path) -> list[Dag]:
        graphs = self._bytes(folder, "graphs", self.graphs)
        return read_tpch(
            data,
            graphs,
            self.queries,
            size=self.size,
            cores=self.cores or 0,
            needs=self.tasks or Needs(),
            by_stage=self._by_stage,
        )

    @property
    def _by_stage(self) -> bool:
        return self.classes == "stage"

    def _machine_bytes(self) -> int:
        try:
            return dict(read_amounts({"memory": self.machine_memory}, "")).get("memory", 0)
        except SettingsError as error:
            raise SettingsError("machineMemory", error.problem) from None

    @staticmethod
    def _bytes(folder: Path, setting: str, name: str) -> bytes:
        try:
            data = (folder / name).read_bytes()
            return gzip.decompress(data) if name.endswith(".gz") else data
        except (OSError, EOFError, ZlibError) as error:
            raise SettingsError(setting, f"{name} cannot be read: {error}") from error


def _totals(dags: Sequence[Dag]) -> tuple[Counter[Kind], dict[Kind, float]]:
    """Tasks and work by kind."""
    counts: Counter[Kind] = Counter()
    work: dict[Kind, float] = defaultdict(float)
    for dag in dags:
        for stage in dag.stages:
            counts[stage.kind] += stage.tasks
            work[stage.kind] += stage.tasks * stage.seconds
    return counts, work
