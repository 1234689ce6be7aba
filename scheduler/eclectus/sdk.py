"""DagJobs written in Python: stages, which depends on which, and their YAML or their submission.

    with DagJob("nightly", deadline_seconds=7200) as job:
        extract = Stage("extract", image=IMAGE, args=["extract"], tasks=20, requests={"cpu": "1"})
        report = Stage("report", image=IMAGE, args=["report"])
        extract >> report
    job.submit()

A stage belongs to the job in whose `with` block it is made. What is wrong with a job is said at the end of
the block, before anything is sent; the API server checks the rest. Fields that are left out are left to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, overload

import yaml

from eclectus.api.dag_job import (
    JOB_NAME_CHARACTERS,
    MAX_PARAMETER_CHARACTERS,
    MAX_PARAMETERS,
    MAX_RETRIES,
    MAX_STAGES,
    MAX_TASKS,
    MAX_TASKS_OF_JOB,
    STAGE_NAME_CHARACTERS,
    VALUE_CHARACTERS,
)
from eclectus.api.names import API_VERSION, DAG_JOB, DAG_JOBS
from eclectus.kube.requests import FieldError
from eclectus.kube.stage_order import topological
from eclectus.kubeclient.kubeconfigs import default_namespace
from eclectus.model.errors import SettingsError

__all__ = ["DagJob", "Stage"]

REQUEST_SECONDS = 30.0
GENERATED_CHARACTERS = 5  # that the API server appends to a generateName
CONTAINER = "main"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PARAMETER = re.compile(r"[A-Za-z0-9_]{1,63}")

Object = dict[str, Any]
Amounts = Mapping[str, str | int]

_current: ContextVar[DagJob | None] = ContextVar("job", default=None)


@dataclass(eq=False, kw_only=True)
class Stage:
    """Equal pods, the tasks of a stage; `a >> b` lets b start when all tasks of a have succeeded.

    Either `image` with what its container runs, or a whole pod `template` with a `spec`. `seconds`: the
    expected run time of a task. `reads`: parents whose results it reads on their nodes; `outputs_of`: parents
    whose outputs its containers find in OUTPUT_STAGE. A container finds the number of its task in TASK_INDEX.
    `max_parallel`: so many of its pods at most at a time. Raises SettingsError outside of a job's `with`
    block.
    """

    name: str = field(kw_only=False)
    image: str = ""
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    requests: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)
    template: Mapping[str, Any] | None = None
    tasks: int | None = None
    max_parallel: int | None = None
    retries: int | None = None
    seconds: float | None = None
    speculative: bool | None = None
    reads: Sequence[Stage] = ()
    outputs_of: Sequence[Stage] = ()
    parents: list[Stage] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        job = _current.get()
        if job is None:
            raise SettingsError(f"stage {self.name}", "make it inside of a job: with DagJob(...) as job:")
        if bool(self.image) == (self.template is not None):
            raise SettingsError(f"stage {self.name}", "must have either an image or a template")
        job.stages.append(self)

    @overload
    def __rshift__(self, children: Stage) -> Stage: ...
    @overload
    def __rshift__(self, children: Sequence[Stage]) -> Sequence[Stage]: ...
    def __rshift__(self, children: Stage | Sequence[Stage]) -> Stage | Sequence[Stage]:
        """These stages depend on this one; returns them, so that chains can be written."""
        for child in [children] if isinstance(children, Stage) else children:
            child.after(self)
        return children

    def __rrshift__(self, parents: Sequence[Stage]) -> Stage:
        """This stage depends on all of these: `[a, b] >> c`."""
        self.after(*parents)
        return self

    def after(self, *parents: Stage) -> None:
        """This stage depends on these too."""
        self.parents += [each for each in parents if each not in self.parents]

    def check(self) -> None:
        """Raises SettingsError for a name or a number that no cluster would take."""
        path = f"stage {self.name}"
        _check_name(f"{path}: name", self.name, STAGE_NAME_CHARACTERS)
        _check_number(f"{path}: tasks", self.tasks, 1, MAX_TASKS)
        _check_number(f"{path}: max_parallel", self.max_parallel, 1, MAX_TASKS)
        _check_number(f"{path}: retries", self.retries, 0, MAX_RETRIES)
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise SettingsError(f"{path}: seconds", f"must be above 0, not {self.seconds}")

    def manifest(self) -> Object:
        """The stage as part of a DagJob's spec."""
        return _given(
            name=self.name,
            dependsOn=[each.name for each in self.all_parents],
            inputs=[
                _given(stage=each.name, output=each in self.outputs_of or None)
                for each in dict.fromkeys((*self.reads, *self.outputs_of))
            ],
            tasks=self.tasks,
            maxParallel=self.max_parallel,
            retries=self.retries,
            estimate=_given(seconds=self.seconds),
            speculative=self.speculative,
            template=dict(self.template) if self.template is not None else self._template(),
        )

    @property
    def all_parents(self) -> list[Stage]:
        """The stages that it depends on, and those whose results or outputs it reads."""
        return list(dict.fromkeys((*self.parents, *self.reads, *self.outputs_of)))

    def _template(self) -> Object:
        container = _given(
            name=CONTAINER,
            image=self.image,
            command=list(self.command),
            args=list(self.args),
            env=[{"name": name, "value": value} for name, value in self.env.items()],
            resources=_given(requests=dict(self.requests), limits=dict(self.limits)),
        )
        return {"spec": {"containers": [container]}}


@dataclass(eq=False, kw_only=True)
class DagJob:
    """A job of stages. With `generate` the API server appends five characters to the name.

    A container finds each of the `parameters` in PARAM_NAME. The other fields are those of docs/dag-jobs.md.
    Raises SettingsError at the end of its `with` block for what could never run, such as stages that depend
    on each other in a cycle.
    """

    name: str = field(kw_only=False)
    generate: bool = False
    namespace: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    pool: str | None = None
    weight: float | None = None
    altruism: float | None = None
    max_parallel: int | None = None
    deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    speculative: bool | None = None
    suspend: bool | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list, init=False)
    _entered: list[Token[DagJob | None]] = field(default_factory=list, init=False, repr=False)

    def __enter__(self) -> DagJob:
        """Stages that are made from now on belong to this job."""
        self._entered.append(_current.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """No more stages; raises SettingsError for what could never run."""
        _current.reset(self._entered.pop())
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raises SettingsError for a name, a number or a dependency that no cluster would take."""
        _check_name("name", self.name, JOB_NAME_CHARACTERS - (GENERATED_CHARACTERS if self.generate else 0))
        _check_number("max_parallel", self.max_parallel, 1, MAX_TASKS_OF_JOB)
        _check_parameters(self.parameters)
        if not 1 <= len(self.stages) <= MAX_STAGES:
            raise SettingsError("stages", f"there must be 1 to {MAX_STAGES} of them, not {len(self.stages)}")
        for each in self.stages:
            each.check()
            for other in each.all_parents:
                if other not in self.stages:
                    problem = f"depends on {other.name}, which is of another job"
                    raise SettingsError(f"stage {each.name}", problem)
        tasks = sum(each.tasks or 1 for each in self.stages)
        if tasks > MAX_TASKS_OF_JOB:
            raise SettingsError(
                "stages", f"have {tasks:,} tasks in all; a job has at most {MAX_TASKS_OF_JOB:,}"
            )
        graph = [(each.name, [one.name for one in each.all_parents]) for each in self.stages]
        try:
            topological(graph)
        except FieldError as error:
            raise SettingsError(error.field, error.problem) from error

    def manifest(self) -> Object:
        """The object for the API server. Raises SettingsError, see `check`."""
        self.check()
        metadata = _given(
            name=None if self.generate else self.name,
            generateName=f"{self.name}-" if self.generate else None,
            namespace=self.namespace,
            labels=dict(self.labels),
        )
        spec = _given(
            pool=self.pool,
            weight=self.weight,
            altruism=self.altruism,
            maxParallel=self.max_parallel,
            deadlineSeconds=self.deadline_seconds,
            ttlSecondsAfterFinished=self.ttl_seconds_after_finished,
            speculative=self.speculative,
            suspend=self.suspend,
            parameters=[{"name": name, "value": value} for name, value in self.parameters.items()],
            stages=[each.manifest() for each in self.stages],
        )
        return {"apiVersion": API_VERSION, "kind": DAG_JOB, "metadata": metadata, "spec": spec}

    def to_yaml(self) -> str:
        """The same as YAML, for `kubectl create -f -`. Raises SettingsError, see `check`."""
        return yaml.safe_dump(self.manifest(), sort_keys=False)

    def submit(self, *, kubeconfig: Path | None = None, context: str | None = None) -> str:
        """Create the job on the cluster of a kubeconfig, or of the pod this runs in; returns its name.

        In the namespace of the job, else in that of the context. Raises SettingsError, see `check`;
        CredentialsError without a usable kubeconfig; ApiError where the request fails, and UnsureError, one
        of these, where the job may have been created all the same.
        """
        manifest, namespace = self.manifest(), self.namespace or default_namespace(kubeconfig, context)
        # A thread has no event loop yet; the caller's may be running, as in a notebook.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(_created, manifest, namespace, kubeconfig, context).result()


def _created(manifest: Object, namespace: str, kubeconfig: Path | None, context: str | None) -> str:
    import asyncio

    try:
        from eclectus.kubeclient.client import ObjectApi, connected
        from eclectus.kubeclient.credentials import load
    except ModuleNotFoundError as error:
        problem = f"needs the package {error.name}: from a checkout, pip install '.[cli]' brings it"
        raise SettingsError("submit", problem) from error

    async def create() -> str:
        async with connected(load(kubeconfig, context), REQUEST_SECONDS) as client:
            path = f"/apis/{API_VERSION}/namespaces/{namespace}/{DAG_JOBS}"
            return str((await ObjectApi(client).send("POST", path, manifest))["metadata"]["name"])

    return asyncio.run(create())


def _given(**fields: Any) -> Object:
    """The fields that are set, so that the defaults of the API server hold for the others."""
    return {name: value for name, value in fields.items() if value is not None and value not in ([], {})}


def _check_name(path: str, name: str, most: int) -> None:
    if not _NAME.fullmatch(name) or len(name) > most:
        raise SettingsError(
            path, f"{name!r} must be 1 to {most} of a-z, 0-9 and -, and neither begin nor end with -"
        )


def _check_parameters(given: Mapping[str, str]) -> None:
    for name, value in given.items():
        if not _PARAMETER.fullmatch(name):
            raise SettingsError("parameters", f"the name {name!r} must be 1 to 63 of A-Z, a-z, 0-9 and _")
        if not isinstance(value, str) or len(value) > VALUE_CHARACTERS:
            raise SettingsError(
                f"parameters[{name}]", f"must be text of at most {VALUE_CHARACTERS} characters"
            )
    total = sum(len(name) + len(value) for name, value in given.items())
    if len(given) > MAX_PARAMETERS or total > MAX_PARAMETER_CHARACTERS:
        most = f"{MAX_PARAMETERS} and {MAX_PARAMETER_CHARACTERS:,} characters in all"
        raise SettingsError(
            "parameters", f"are {len(given)} with {total:,} characters; a job has at most {most}"
        )


def _check_number(path: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise SettingsError(path, f"must be {least} to {most:,}, not {value!r}")
