"""What tasks hand on to the stages that come after them: a short text. Pure.

A task's output is the termination message of the first container of its pod: what that has written to
`terminationMessagePath`, of which the kubelet keeps 4 KiB. So a task needs no token and no permission: an
annotation on its own pod would need that of changing any pod of the namespace. And the status of the pod has
it from the moment at which that says that the task has succeeded, so nobody sees the one without the other.

It is recorded in the status of the job with the success of its task, by one write, and from then on its pod
is not needed. A stage starts when the successes of its parents are written, so what its pods are given is
what is recorded, and the same for all of them. They have it as an annotation, once for all containers, whose
variables refer to that: no text of a task is taken for a reference to a variable.

What is too long is not cut: half of a path is worse than none. The task has succeeded all the same; status
and an event say why its output is missing.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from eclectus.api.dag_job import MAX_OUTPUTS, DagJob, DagJobSpec, DagJobStatus, Stage, StageStatus, TaskOutput
from eclectus.api.names import OUTPUT

# As JSON, in UTF-8: so that everything that is handed on fits into the status, and into a pod.
TASK_BYTES = 1024
STAGE_BYTES = 8 * 1024  # of all tasks of a stage, which share it equally
JOB_BYTES, POD_BYTES = 128 * 1024, 64 * 1024  # that the stages may hand on which a job, and a stage, reads
VARIABLE_PREFIX = "OUTPUT_"


def outputs(
    stage: Stage, recorded: StageStatus, succeeded: frozenset[int], messages: Mapping[int, str]
) -> tuple[TaskOutput, ...]:
    """The outputs of a stage: what is recorded, and those of tasks that have succeeded since.

    `messages`: what the pods of tasks that have succeeded say. What was recorded of a task that runs again
    because its results were lost is dropped.
    """
    found = {each.task: each for each in recorded.outputs if each.task in succeeded}
    for task, message in messages.items():
        if task in succeeded and task not in found and (text := message.rstrip("\r\n")):
            found[task] = _checked(task, text, _most_bytes(stage))
    return tuple(found[task] for task in sorted(found))


def annotations(job: DagJob, stage: Stage) -> dict[str, str]:
    """What the pods of a stage are given, as the status of the job has it."""
    known = {each.name: each.outputs for each in job.status.stages}
    stages = {each.name: each for each in job.spec.stages}
    names = stage.reads_outputs_of
    return {_annotation(name): _text(stages[name].tasks, known.get(name, ())) for name in names}


def variables(stage: Stage) -> Iterator[dict[str, Any]]:
    """The environment variables of each container that refer to those annotations."""
    for name in stage.reads_outputs_of:
        field = {"fieldRef": {"fieldPath": f"metadata.annotations['{_annotation(name)}']"}}
        yield {"name": VARIABLE_PREFIX + name.upper().replace("-", "_"), "valueFrom": field}


def new_problems(old: DagJobStatus, new: DagJobStatus) -> list[str]:
    """What the new status says of outputs that are missing, and the old one did not."""
    before = {(stage.name, each.task) for stage in old.stages for each in stage.outputs}
    return [
        f"{stage.name}[{each.task}]: {each.problem}"
        for stage in new.stages
        for each in stage.outputs
        if each.problem and (stage.name, each.task) not in before
    ]


def problems(spec: DagJobSpec) -> Iterator[str]:
    """What is wrong with the inputs of a spec whose stages are known."""
    stages = {stage.name: stage for stage in spec.stages}
    for stage in spec.stages:
        for name in stage.reads_outputs_of:
            tasks = stages[name].tasks if name in stages else 0
            if tasks > MAX_OUTPUTS:
                why = f"stage {name} has {tasks:,} tasks, and one with more than {MAX_OUTPUTS} has no output"
                yield f"stages[{stage.name}].inputs[{name}].output: {why}"
        yield from _too_many(f"stages[{stage.name}].inputs", stage.reads_outputs_of, stages, POD_BYTES)
    yield from _too_many("stages", spec.with_output, stages, JOB_BYTES)


def _too_many(path: str, names: Iterable[str], stages: Mapping[str, Stage], most: int) -> Iterator[str]:
    found = [stages[name] for name in names if name in stages]
    total = sum(_most_bytes(stage) * stage.tasks for stage in found)
    if total > most:
        yield f"{path}: the {len(found)} stages whose output is read may have {total:,} bytes, above {most:,}"


def _annotation(stage: str) -> str:
    return f"{OUTPUT}.{stage}"


def _most_bytes(stage: Stage) -> int:
    return min(TASK_BYTES, STAGE_BYTES // stage.tasks)


def _checked(task: int, text: str, most: int) -> TaskOutput:
    if "\0" in text:
        return TaskOutput(task, problem="it has a NUL character, which no environment variable may have")
    size = len(msgspec.json.encode(text)) - len('""')
    if size > most:
        return TaskOutput(task, problem=f"it has {size:,} bytes as JSON, at most {most:,} are handed on")
    return TaskOutput(task, text)


def _text(tasks: int, known: Iterable[TaskOutput]) -> str:
    """Of one task its text, of several a JSON list, with null for a task that hands on nothing."""
    texts = {each.task: each.text for each in known if not each.problem}
    if tasks == 1:
        return texts.get(0, "")
    return msgspec.json.encode([texts.get(task) for task in range(tasks)]).decode()
