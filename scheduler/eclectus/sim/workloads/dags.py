"""`workload: {dags: …}` reads jobs that are graphs of stages, from files of three formats.

`eclectus` is a JSON format of its own: docs/dags.schema.json, explained in docs/simulator.md.

    {"jobs": [{"name": "report", "arrival": 0, "stages": [
        {"name": "read", "tasks": 8, "seconds": 2.5, "requests": {"cpu": "500m", "memory": "1Gi"}},
        {"name": "join", "tasks": 4, "seconds": 4, "parents": ["read"]}]}]}

`alibaba` are batch jobs of the cluster-trace-v2018: one job per line as JSON, parents by task id. The trace's
tasks become stages, its instances tasks. Its recorded times do not respect the graphs, so the graphs are
replayed and not the times; a job arrives when its first task started.

`tpch` are profiles of the TPC-H queries on Spark, as the ERDOS scheduling simulator publishes them (MIT). One
JSON file has the measured stages by `tpch_q<query>_<size>_maxCores_<cores>`, one YAML file the graphs. Task
times depend on the number of cores that a query had when it was measured, so profiles of different sizes and
cores must not be mixed: both are single settings.

What the scheduler believes of the run times of stages is drawn here too, beside their true means.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from math import inf
from pathlib import Path
from typing import Annotated, Literal
from zlib import crc32

import msgspec
from msgspec import Meta, Struct

from eclectus.config.settings_reading import camel, read, read_yaml
from eclectus.model.errors import SettingsError, errors_below
from eclectus.model.printed import nearest
from eclectus.model.settings import REQUIRED, setting
from eclectus.sim.base.files import read_data
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.random_draws import SizeDistribution, endless_draws, stream
from eclectus.sim.base.work import (
    WINDOW_SECONDS,
    Arrival,
    ArrivalPlan,
    Classes,
    Dag,
    StageDraft,
    StageRules,
    WorkClass,
    build_dag,
    class_name,
    shrunk,
)
from eclectus.sim.workloads.workload import Needs, TaskNeeds, Workload, load
from eclectus.sim.world.cluster import check_distinct, read_amounts

SECONDS_MOST = 1e9


@dataclass(frozen=True, kw_only=True)
class StageField(TaskNeeds):
    """One stage: identical tasks."""

    name: str = setting(REQUIRED, "name by which other stages refer to it")
    seconds: float = setting(
        REQUIRED, "mean size of a task, at speed 1", unit="s", least=1e-6, most=SECONDS_MOST
    )
    tasks: int = setting(1, "number of tasks", least=1, most=1_000_000)
    parents: tuple[str, ...] = setting((), "stages that must have ended before this one starts")
    workload: str = setting("", "the pods' class, for reports and learners; by default as `classes` says")


@dataclass(frozen=True, kw_only=True)
class JobField:
    """One job."""

    name: str = setting(REQUIRED, "name in messages and in names of classes")
    stages: tuple[StageField, ...]
    arrival: float | None = setting(
        None, "arrival time, for arrivals: recorded", unit="s", least=0, most=SECONDS_MOST
    )

    def dag(self, classes: Classes) -> Dag:
        """The validated graph. Raises ValueError."""
        drafts = []
        for stage in self.stages:
            work_class = stage.work_class(stage.workload or class_name(self.name, stage.name, classes))
            drafts.append(StageDraft(stage.name, work_class, stage.tasks, stage.seconds, stage.parents))
        return build_dag(self.name, drafts, self.arrival)


@dataclass(frozen=True, kw_only=True)
class DagFile:
    """The contents of a file."""

    jobs: tuple[JobField, ...]


def read_dags(data: bytes, *, classes: Classes) -> list[Dag]:
    """The jobs of a file. Raises ValueError naming the field."""
    try:
        jobs = read(DagFile, msgspec.json.decode(data), "").jobs
        check_distinct((job.name for job in jobs), "jobs")
    except SettingsError as error:  # the path is in this file, not in the settings
        raise ValueError(str(error)) from None
    return [job.dag(classes) for job in jobs]


class _TraceTask(Struct, frozen=True):
    """One task of the trace."""

    id: int
    instances: Annotated[float, Meta(ge=1, le=1e7)]
    duration: Annotated[float, Meta(gt=0, le=1e9)]  # mean of the instances, seconds
    start_time: float
    cpu: Annotated[float, Meta(ge=0, le=1e6)]  # hundredths of a core
    mem: Annotated[float, Meta(ge=0, le=100)]  # per cent of a machine
    parents: tuple[int, ...] = ()


class _TraceJob(Struct, frozen=True):
    job: str
    tasks: tuple[_TraceTask, ...]


def read_alibaba(data: bytes, *, machine_memory: int, instead: Needs, classes: Classes) -> list[Dag]:
    """The jobs of a file with their recorded requests, or with those that `instead` returns.

    `machine_memory` is that of a machine of the trace, in bytes. Raises ValueError naming the line.
    """
    found = []
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(_traced(msgspec.json.decode(line, type=_TraceJob), machine_memory, instead, classes))
        except (ValueError, msgspec.DecodeError) as error:
            raise ValueError(f"line {number}: {error}") from None
    return found


def _traced(job: _TraceJob, machine_memory: int, instead: Needs, classes: Classes) -> Dag:
    drafts = []
    for task in job.tasks:
        if task.instances != int(task.instances):
            raise ValueError(f"job {job.job!r}: task {task.id} has {task.instances:g} instances")
        memory = round(task.mem / 100 * machine_memory)
        recorded = TaskNeeds(requests={"cpu": f"{round(task.cpu * 10)}m", "memory": memory})
        needs = instead(job.job, str(task.id)) or recorded
        work_class = needs.work_class(class_name(job.job, str(task.id), classes))
        parents = tuple(str(parent) for parent in task.parents)
        drafts.append(StageDraft(str(task.id), work_class, int(task.instances), task.duration, parents))
    return build_dag(job.job, drafts, min((task.start_time for task in job.tasks), default=0.0))


class _Measured(Struct, frozen=True):
    """One stage of a profile."""

    stage_id: int
    num_tasks: Annotated[int, Meta(ge=1)]
    average_runtime_ms: Annotated[float, Meta(gt=0, le=1e12)]


class _Node(Struct, frozen=True):
    """One stage of a graph."""

    name: int
    children: tuple[int, ...] = ()


class _Query(Struct, frozen=True):
    name: str
    graph: tuple[_Node, ...]


class _Graphs(Struct, frozen=True):
    graphs: tuple[_Query, ...]


def _profiled(query: _Query, stages: Sequence[_Measured], needs: Needs, classes: Classes) -> Dag:
    parents: dict[int, list[str]] = {node.name: [] for node in query.graph}
    for node in query.graph:
        for child in node.children:
            if child not in parents:
                raise ValueError(f"{query.name}: stage {node.name} has a child {child} that is not a stage")
            parents[child].append(str(node.name))
    if sorted(stage.stage_id for stage in stages) != sorted(parents):
        raise ValueError(f"{query.name}: the profile and the graph have different stages")
    drafts = []
    for stage in stages:
        name, above = str(stage.stage_id), tuple(parents[stage.stage_id])
        asked = needs(query.name, name) or TaskNeeds()
        work_class = asked.work_class(class_name(query.name, name, classes))
        drafts.append(StageDraft(name, work_class, stage.num_tasks, stage.average_runtime_ms / 1000.0, above))
    return build_dag(query.name, drafts)


@dataclass(frozen=True)
class Estimates:
    """Errors of estimates. True sizes do not change with them."""

    source: Literal["declared", "history"] = setting(
        "declared",
        "declared: the mean of the stage, with the errors below; history: the median of the last runs of "
        "the same stage of a job of that name, unknown before the first run has ended",
        why="perfect unless errors are set",
    )
    bias: float = setting(
        0.0, "declared: relative error of every estimate; 0.5 is half too much", least=-0.99, most=99
    )
    noise: float = setting(
        0.0,
        "declared: standard deviation of the logarithm of a factor with mean 1, drawn for every stage of "
        "every job",
        least=0,
        most=3,
    )
    runs: int = setting(
        5, "history: how many last runs", why="one outlier among five counts little", least=1, most=100
    )

    def __post_init__(self) -> None:
        for name in ("bias", "noise"):
            if self.source == "history" and getattr(self, name):
                raise SettingsError(name, "is valid only with source: declared")

    @property
    def history_runs(self) -> int:
        """How many last runs estimates are made of; 0: they are declared."""
        return self.runs if self.source == "history" else 0

    def drawn(self, seed: int) -> Callable[[Dag], tuple[float, ...] | None]:
        """A function that returns an estimate of each stage of a job, in seconds; None: the true means."""
        if not self.bias and not self.noise:
            return lambda dag: None
        rng = stream(seed, "errors of estimates")

        def believed(dag: Dag) -> tuple[float, ...]:
            factors = rng.lognormal(-(self.noise**2) / 2, self.noise, len(dag.stages)) * (1.0 + self.bias)
            return tuple((factors * [stage.seconds for stage in dag.stages]).tolist())

        return believed


_ONLY = {"graphs": "tpch", "queries": "tpch", "size": "tpch", "cores": "tpch", "machine_memory": "alibaba"}


@dataclass(frozen=True)
class Dags(Workload):
    """Settings of the workload."""

    file: str = setting(REQUIRED, "path of the jobs, relative to the scenario's folder; .gz is compressed")
    format: Literal["eclectus", "tpch", "alibaba"] = setting(
        "eclectus", "format of the file", why="described in docs/dags.schema.json"
    )
    arrivals: Literal["together", "poisson", "recorded"] = setting(
        "together", "all at 0, as a Poisson process, or as recorded", why="needs no rate"
    )
    rate: float | None = setting(None, "poisson: jobs that arrive per second", unit="jobs/s", least=1e-9)
    load: float | None = setting(None, "poisson, instead of rate: arriving work over capacity", least=1e-6)
    stretch: float = setting(1.0, "recorded: factor on arrival times; 0.01 compresses", least=1e-9, most=1e9)
    jobs: int | None = setting(
        None, "number of jobs, repeating the file's if it has fewer; by default each once", least=1
    )
    sizes: SizeDistribution = setting(
        SizeDistribution("deterministic"), "distribution of a task's size over the mean of its stage"
    )
    classes: Classes = setting(
        "job",
        "the class of a task, for reports and learners: the job's name, the job's and the stage's, or "
        "one for all",
        why="reports by job name; use stage if a learner must not mix stages of unequal length, and all "
        "if nobody learns: runs take less time",
    )
    shrink: int = setting(
        1, "divides the number of tasks of each stage, of which at least one is left", least=1
    )
    most_tasks: int | None = setting(
        None, "leave out jobs with more tasks than this, before they shrink", least=1
    )
    estimates: Estimates = setting(Estimates(), "what the scheduler believes of run times")
    failures: float = setting(
        0.0, "probability that an attempt of a task fails; it is made again", least=0, most=0.9
    )
    fairness_window: float = setting(
        WINDOW_SECONDS,
        "length of the windows of Jain's index; in each jobs count that have tasks waiting all the time",
        why="as in Carbyne's evaluation; jobs that are shorter fill only shorter ones",
        unit="s",
        least=0.001,
    )
    tasks: TaskNeeds | None = setting(None, "tpch, alibaba: what every task requests")
    mix: tuple[TaskNeeds, ...] = setting(
        (), "tpch, alibaba, instead of tasks: each stage requests one of these, the same in all runs"
    )
    graphs: str = setting("", "tpch: path of the graphs, .yaml or .yaml.gz")
    queries: tuple[str, ...] = setting((), "tpch: names of queries, such as Q1; by default all")
    size: str = setting("", "tpch: data size, such as 50g")
    cores: int | None = setting(None, "tpch: maxCores of the profiles", least=1)
    machine_memory: str = setting(
        "0", "alibaba: memory of a machine; 0: no memory requests", why="the trace does not contain it"
    )

    def __post_init__(self) -> None:
        for name, owner in _ONLY.items():
            if self.format != owner and getattr(self, name) != getattr(type(self), name):
                raise SettingsError(camel(name), f"is valid only with format: {owner}")
        if self.format == "tpch" and not (self.graphs and self.size and self.cores):
            raise SettingsError("graphs", "format: tpch needs graphs, size and cores")
        for name in ("tasks", "mix"):
            if self.format == "eclectus" and getattr(self, name):
                raise SettingsError(name, "stages of this format have requests of their own")
        if self.tasks is not None and self.mix:
            raise SettingsError("mix", "give either tasks or mix")
        if (self.arrivals == "poisson") != ((self.rate is None) != (self.load is None)):
            problem = "arrivals: poisson needs either rate or load; other arrivals take neither"
            raise SettingsError("rate", problem)
        if self.arrivals != "recorded" and self.stretch != 1.0:
            raise SettingsError("stretch", "is valid only with arrivals: recorded")
        if self.sizes.mean is not None:
            raise SettingsError("sizes.mean", "stages have their own means; leave it out")

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> ArrivalPlan:
        """Read the file and check every job. Raises SettingsError."""
        dags = [
            shrunk(dag, self.shrink)
            for dag in self._read(folder)
            if self.most_tasks is None or dag.tasks <= self.most_tasks
        ]
        if not dags:
            which = " so small" if self.most_tasks else ""
            raise SettingsError("file", f"{self.file} contains no job{which}")
        jobs = list(islice(cycle(dags), self.jobs or len(dags)))
        counts, work = _totals(jobs)
        jobs_a_second = self._jobs_a_second(jobs, work, machines)
        rate = jobs_a_second / len(jobs)
        ends = self.arrivals != "poisson" or self.jobs is not None
        with errors_below("sizes"):
            relative_sizes = replace(self.sizes.with_file_values(folder), mean=1.0)
        return ArrivalPlan(
            mean_sizes={work_class: work[work_class] / count for work_class, count in counts.items()},
            work_rates={work_class: rate * total for work_class, total in work.items()},
            tasks_a_second=rate * counts.total(),
            tasks=counts.total() if ends else None,
            measured=range(counts.total()) if self.arrivals == "together" else None,
            stages=StageRules(self.estimates.history_runs, self.failures, self.fairness_window),
            arrivals=partial(self._arrivals, tuple(jobs), jobs_a_second, relative_sizes),
        )

    def _jobs_a_second(
        self, dags: Sequence[Dag], work: Mapping[WorkClass, float], machines: Mapping[str, Machine]
    ) -> float:
        if self.arrivals == "recorded":
            times = self._recorded(dags)
            return len(times) / times[-1] if times[-1] else inf
        if self.arrivals == "together":
            return inf
        if self.rate is not None:
            return self.rate
        at_one, exact = load({work_class: total / len(dags) for work_class, total in work.items()}, machines)
        if not exact:
            problem = "is ambiguous if stages have different capacity on a machine; give rate"
            raise SettingsError("load", problem)
        return (self.load or 0.0) / at_one

    def _recorded(self, dags: Sequence[Dag]) -> list[float]:
        """Arrival times since the first arrival, ascending. Raises SettingsError."""
        if self.jobs is not None and len({dag.name for dag in dags}) < self.jobs:
            problem = "is more than the file contains, and recorded arrivals are not repeated"
            raise SettingsError("jobs", problem)
        times = []
        for dag in dags:
            if dag.arrival is None:
                raise SettingsError("arrivals", f"{self.file} has no arrival time of job {dag.name!r}")
            times.append(dag.arrival)
        return sorted((at - min(times)) * self.stretch for at in times)

    def _arrivals(
        self, dags: Sequence[Dag], jobs_a_second: float, relative_sizes: SizeDistribution, seed: int
    ) -> Iterator[Arrival]:
        """Each job once, in a random order unless recorded; endless for poisson without `jobs`."""
        draw = relative_sizes.sampler(stream(seed, "sizes of stages"))
        believed = self.estimates.drawn(seed)
        for at, dag in self._times(dags, jobs_a_second, seed):
            sizes: list[float] = []
            for stage in dag.stages:
                sizes += (draw(stage.tasks) * stage.seconds).tolist()
            yield Arrival(at, dag.stages[0].work_class, tuple(sizes), dag=dag, estimates=believed(dag))

    def _times(self, dags: Sequence[Dag], jobs_a_second: float, seed: int) -> Iterator[tuple[float, Dag]]:
        if self.arrivals == "recorded":
            by_time = sorted(dags, key=lambda dag: dag.arrival or 0.0)
            yield from zip(self._recorded(dags), by_time, strict=True)
            return
        order, gaps = stream(seed, "order of jobs"), stream(seed, "arrivals")
        gap = endless_draws(lambda count: gaps.exponential(1.0, count))
        now, is_endless = 0.0, self.arrivals == "poisson" and self.jobs is None
        while True:
            for at in order.permutation(len(dags)).tolist():
                now += next(gap) / jobs_a_second
                yield now, dags[at]
            if not is_endless:
                return

    def _read(self, folder: Path) -> list[Dag]:
        data = read_data(folder, self.file)
        try:
            if self.format == "tpch":
                return self._read_tpch(data, folder)
            if self.format == "alibaba":
                memory = self._machine_bytes()
                return read_alibaba(data, machine_memory=memory, instead=self._needs, classes=self.classes)
            return read_dags(data, classes=self.classes)
        except ValueError as error:
            raise SettingsError("file", f"{self.file}: {error}") from None

    def _read_tpch(self, profiles: bytes, folder: Path) -> list[Dag]:
        """The queries with their profiles of this size and cores. Raises ValueError or SettingsError."""
        graphs = read_data(folder, self.graphs, "graphs")
        measured = msgspec.json.decode(profiles, type=dict[str, list[_Measured]])
        known = {each.name: each for each in msgspec.convert(read_yaml(graphs.decode()), _Graphs).graphs}
        for at, name in enumerate(self.queries):
            if name not in known:
                problem = f"{name!r} is not a query; {nearest(name, list(known))}"
                raise SettingsError(f"queries[{at}]", problem)
        chosen = [(known[name], self._column(measured, name)) for name in self.queries or known]
        return [_profiled(query, column, self._needs, self.classes) for query, column in chosen]

    def _column(self, measured: dict[str, list[_Measured]], query: str) -> list[_Measured]:
        key = f"tpch_{query.lower()}_{self.size}_maxCores_{self.cores}"
        if key not in measured:
            sizes = sorted({each.split("_")[2] for each in measured if each.count("_") == 4})
            columns = sorted({each.split("_")[4] for each in measured if each.count("_") == 4}, key=int)
            known = f"sizes are {', '.join(sizes)}, cores {', '.join(columns)}"
            wrong = "size" if self.size not in sizes else "cores"
            raise SettingsError(wrong, f"there is no profile {key}; {known}")
        return measured[key]

    def _needs(self, job: str, stage: str) -> TaskNeeds | None:
        """What the tasks of a stage request; None: what the file says, or else one core."""
        return self.mix[crc32(f"{job}/{stage}".encode()) % len(self.mix)] if self.mix else self.tasks

    def _machine_bytes(self) -> int:
        try:
            return dict(read_amounts({"memory": self.machine_memory}, "")).get("memory", 0)
        except SettingsError as error:
            raise SettingsError("machineMemory", error.problem) from None


def _totals(dags: Sequence[Dag]) -> tuple[Counter[WorkClass], dict[WorkClass, float]]:
    """Number of tasks and total work of each class."""
    counts: Counter[WorkClass] = Counter()
    work: dict[WorkClass, float] = defaultdict(float)
    for dag in dags:
        for stage in dag.stages:
            counts[stage.work_class] += stage.tasks
            work[stage.work_class] += stage.tasks * stage.seconds
    return counts, work
