"""`eclectus dag suspend`, `resume`, `retry`, `cancel`, `logs`: changes of DAG jobs, and their pods' logs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eclectus.api.dag_job import FAILED, INVALID_SPEC, MAX_RETRY, SUCCEEDED
from eclectus.api.names import (
    API_VERSION,
    ATTEMPT_LABEL,
    DAG_JOB_LABEL,
    DAG_JOBS,
    STAGE_LABEL,
    TASK_INDEX_LABEL,
)
from eclectus.cli import cluster_commands
from eclectus.kubeclient.kubeconfigs import default_namespace
from eclectus.model.printed import nearest, spelling

if TYPE_CHECKING:
    from eclectus.kubeclient.client import ApiClient, ObjectApi

LINES = 10  # of a pod, as `kubectl logs` shows of pods that a selector chooses
BYTES_MOST = 2**20  # of a pod's log
PODS_MOST = 100  # whose logs are read, the first ones
NO_LOG = "has no log"

Object = dict[str, Any]
Change = Callable[["ObjectApi", str], Awaitable[str]]


def _namespace_option(command: cluster_commands.Command) -> cluster_commands.Command:
    text = "Namespace of the jobs. By default that of the kubeconfig's context."
    return click.option("-n", "--namespace", help=text)(command)


def _of_jobs(command: cluster_commands.Command) -> cluster_commands.Command:
    """Add the names of jobs, and where they are, to a command."""
    names = click.argument("names", nargs=-1, required=True, metavar="JOB...")
    return names(_namespace_option(cluster_commands.kubeconfig_options(command)))


@click.command()
@_of_jobs
def suspend(
    names: Sequence[str], namespace: str | None, kubeconfig: Path | None, context: str | None
) -> None:
    """Suspend jobs: pods that have not finished are deleted, what has succeeded remains so.

    \b
    Permissions of the caller, in the namespace:
      get, patch dagjobs.eclectus.dev
    """
    _change(names, namespace, kubeconfig, context, lambda api, path: _set_suspended(api, path, is_to_be=True))


@click.command()
@_of_jobs
def resume(names: Sequence[str], namespace: str | None, kubeconfig: Path | None, context: str | None) -> None:
    """Go on with jobs that are suspended.

    \b
    Permissions of the caller, in the namespace:
      get, patch dagjobs.eclectus.dev
    """
    _change(
        names, namespace, kubeconfig, context, lambda api, path: _set_suspended(api, path, is_to_be=False)
    )


def _read_parameters(context: click.Context, option: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not (name and sign):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        found[name] = value
    return found


@click.command()
@_of_jobs
@click.option(
    "-p",
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_read_parameters,
    help="Another value of a parameter of the jobs, for what runs again. May be given several times.",
)
def retry(
    *,
    names: Sequence[str],
    parameters: Mapping[str, str],
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Run jobs that have failed again, from what has not succeeded.

    Tasks that have succeeded do not run again, also where they ran with another value of a parameter. Each
    other one may fail as often as at first, at once and without a back-off for its last failure, and
    deadlineSeconds begins anew. A job that has not failed is refused.

    \b
    Permissions of the caller, in the namespace:
      get, patch dagjobs.eclectus.dev
    """
    _change(names, namespace, kubeconfig, context, lambda api, path: _retried(api, path, parameters))


@click.command()
@_of_jobs
def cancel(names: Sequence[str], namespace: str | None, kubeconfig: Path | None, context: str | None) -> None:
    """Delete jobs, with their pods and the logs of these.

    \b
    Permissions of the caller, in the namespace:
      delete dagjobs.eclectus.dev
    """
    _change(names, namespace, kubeconfig, context, _cancelled)


@click.command()
@click.argument("name", metavar="JOB")
@_namespace_option
@click.option("--stage", help="Only pods of this stage.")
@click.option("-c", "--container", help="Of this container. By default the first one of each pod.")
@click.option(
    "--tail",
    type=click.IntRange(min=0),
    default=LINES,
    show_default=True,
    help="So many lines of each pod, the last ones.",
)
@cluster_commands.kubeconfig_options
def logs(
    *,
    name: str,
    namespace: str | None,
    stage: str | None,
    container: str | None,
    tail: int,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Print the logs of a job's pods by stage and task; each line begins with its pod.

    \b
    Permissions of the caller, in the namespace:
      list pods, get pods/log
    """
    from eclectus.kubeclient.api_errors import MissingError, RejectedError
    from eclectus.kubeclient.client import ObjectApi, list_objects

    where = namespace or default_namespace(kubeconfig, context)

    async def read(client: ApiClient) -> None:
        selector = f"{DAG_JOB_LABEL}={name}" + (f",{STAGE_LABEL}={stage}" if stage else "")
        path = f"/api/v1/namespaces/{where}/pods"
        listing = list_objects(ObjectApi(client), path, {"labelSelector": selector})
        pods = in_order(await cluster_commands.awaited(listing, "listing the pods"))
        if not pods:
            raise click.ClickException(await _no_pod(ObjectApi(client), where, name, stage))
        for pod in pods[:PODS_MOST]:
            its_name = pod["metadata"]["name"]
            query = {"tailLines": str(tail), "limitBytes": str(BYTES_MOST)}
            query["container"] = container or pod["spec"]["containers"][0]["name"]
            try:
                text = await client.get(f"{path}/{its_name}/log", query)
            except (MissingError, RejectedError) as error:  # it may have been deleted since it was listed
                click.echo(f"note: {its_name} {NO_LOG}: {error.message}", err=True)
                continue
            for line in text.decode(errors="replace").splitlines():
                click.echo(f"{its_name}: {line}")
        if len(pods) > PODS_MOST:
            rest = len(pods) - PODS_MOST
            click.echo(f"note: {rest} more pods: choose a stage by --stage, or use kubectl logs", err=True)

    _run(kubeconfig, context, read)


def _jobs_path(namespace: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/{namespace}/{DAG_JOBS}"


async def _no_pod(api: ObjectApi, namespace: str, name: str, stage: str | None) -> str:
    """Why a job has no logs: with the nearest spelling, if the job or its stage is misspelled."""
    from eclectus.kubeclient.api_errors import MissingError, RejectedError

    jobs = _jobs_path(namespace)
    of_stage, hint = f" of stage {stage}" if stage else "", ""
    try:
        job = await api.send("GET", f"{jobs}/{name}")
        stages = [each["name"] for each in job["spec"]["stages"]]
        if stage and stage not in stages:
            hint = f"; {nearest(stage, stages)}"
    except MissingError:
        return f"there is no DagJob {name!r} in namespace {namespace}{await _near(api, jobs, name)}"
    except RejectedError:  # pods may be all that the caller may read
        pass
    return f"DagJob {name} in namespace {namespace} has no pod{of_stage}{hint}"


async def _near(api: ObjectApi, path: str, name: str) -> str:
    """`; did you mean …` of the objects that exist; empty where none is near, or they may not be listed."""
    from eclectus.kubeclient.api_errors import ApiError
    from eclectus.kubeclient.client import list_objects

    try:
        listed = await list_objects(api, path, metadata_only=True)
    except ApiError:
        return ""
    hint = spelling(name, [each["metadata"]["name"] for each in listed])
    return f"; {hint}" if hint else ""


def in_order(pods: Iterable[Object]) -> list[Object]:
    """By stage, task and attempt; numbers that nobody can read come first."""

    def number(pod: Object, label: str) -> int:
        text = pod["metadata"]["labels"].get(label, "")
        return int(text) if text.isdecimal() else -1

    def place(pod: Object) -> tuple[str, int, int]:
        stage = pod["metadata"]["labels"].get(STAGE_LABEL, "")
        return stage, number(pod, TASK_INDEX_LABEL), number(pod, ATTEMPT_LABEL)

    return sorted(pods, key=place)


async def _set_suspended(api: ObjectApi, path: str, *, is_to_be: bool) -> str:
    found = await api.send("GET", path)
    if bool(found["spec"].get("suspend")) == is_to_be:
        return "is suspended already" if is_to_be else "is not suspended"
    await api.send("PATCH", path, {"spec": {"suspend": is_to_be}})
    return "suspended" if is_to_be else "resumed"


async def _retried(api: ObjectApi, path: str, parameters: Mapping[str, str]) -> str:
    """Ask for a retry, of the job as it was read: it must not have been asked for meanwhile."""
    found = await api.send("GET", path)
    spec: Object = {"retry": next_retry(found)}
    if parameters:
        spec["parameters"] = with_values(found["spec"].get("parameters") or [], parameters)
    version = {"resourceVersion": found["metadata"]["resourceVersion"]}
    await api.send("PATCH", path, {"metadata": version, "spec": spec})
    done = found["status"].get("tasks")
    return f"runs again, with the {done} tasks that have succeeded" if done else "runs again"


def next_retry(job: Object) -> int:
    """The number of the retry to ask for. Raises click.ClickException for a job that cannot be retried."""
    status, spec = job.get("status") or {}, job["spec"]
    holding = {each["type"]: each for each in status.get("conditions") or () if each["status"] == "True"}
    asked, taken_up = int(spec.get("retry") or 0), int(status.get("retry") or 0)
    failed = holding.get(FAILED)
    if failed is None:
        raise click.ClickException("has succeeded" if SUCCEEDED in holding else "has not failed")
    if asked > taken_up:
        raise click.ClickException("is to run again already: the operator has not taken that up yet")
    if failed["reason"] == INVALID_SPEC:
        raise click.ClickException(f"can never run, so make a new job: {failed.get('message', '')}")
    if taken_up >= MAX_RETRY:
        raise click.ClickException(f"was retried {taken_up} times, which is the most: make a new job")
    return taken_up + 1


def with_values(known: Sequence[Object], values: Mapping[str, str]) -> list[Object]:
    """The parameters of a job with other values. Raises click.ClickException for one that it has not."""
    names = [each["name"] for each in known]
    for name in values:
        if name not in names:
            raise click.ClickException(f"has no parameter {name!r}; {nearest(name, names)}")
    return [{**each, "value": values.get(each["name"], each["value"])} for each in known]


async def _cancelled(api: ObjectApi, path: str) -> str:
    await api.send("DELETE", path, query={"propagationPolicy": "Background"})
    return "cancelled"


def _change(
    names: Sequence[str], namespace: str | None, kubeconfig: Path | None, context: str | None, change: Change
) -> None:
    """Change each job. One that does not exist, or may not be changed, stops no other; exit code 1."""
    from eclectus.kubeclient.api_errors import ConflictError, MissingError, RejectedError
    from eclectus.kubeclient.client import ObjectApi

    where = namespace or default_namespace(kubeconfig, context)
    jobs, failed = _jobs_path(where), list[str]()

    async def change_all(client: ApiClient) -> None:
        for name in names:
            path = f"{jobs}/{name}"
            try:
                done = await change(ObjectApi(client), path)
            except MissingError:
                near = await _near(ObjectApi(client), jobs, name)
                failed.append(f"there is no DagJob {name!r} in namespace {where}{near}")
            except ConflictError:
                failed.append(f"DagJob {name}: was changed by somebody else just now: try again")
            except (RejectedError, click.ClickException) as error:
                failed.append(f"DagJob {name}: {error.message}")
            else:
                click.echo(f"dagjob {name}: {done}")

    _run(kubeconfig, context, change_all)
    for problem in failed:
        click.echo(f"error: {problem}", err=True)
    if failed:
        raise SystemExit(1)


def _run(kubeconfig: Path | None, context: str | None, work: Callable[[ApiClient], Awaitable[None]]) -> None:
    import asyncio

    from eclectus.kubeclient import credentials
    from eclectus.kubeclient.client import connected

    access = credentials.load(kubeconfig, context)

    async def run() -> None:
        async with connected(access, cluster_commands.REQUEST_SECONDS) as client:
            await work(client)

    asyncio.run(run())
