"""The command `explain`: its options, the forms of its answer, and answers without a cluster.

From a tape, a new engine repeats it up to a moment, and is asked there.
"""

import asyncio
from collections.abc import Callable, Iterator
from math import inf, nan
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click
import msgspec

from eclectus.api.names import DAG_JOB_LABEL, JOB_NAME_LABEL
from eclectus.cli.cluster_commands import awaited, default_namespace, kubeconfig_options, output_option
from eclectus.cli.explain import transport
from eclectus.cli.explain.explained_text import job_lines, node_lines, pod_lines, what_if_lines
from eclectus.cli.output import Progress, structured
from eclectus.config import parse
from eclectus.engine.engine import Engine
from eclectus.explain.node import node_explanation
from eclectus.explain.pod import explain_pod, job_explanation
from eclectus.explain.what_if import Question, WhatIfExplanation, what_if_explanation
from eclectus.model.explanation import JobExplanation, NodeExplanation, PodExplanation
from eclectus.tape import Step, TapeError, read

STEP_PREFIX = "step:"


class Moment(NamedTuple):
    """A moment of a tape: so many seconds after its first step, or right after a step, counted from 1."""

    seconds: float = inf
    step: int = 0


def read_moment(ctx: click.Context, param: click.Parameter, text: str | None) -> Moment:
    """`90` or `90.5` are seconds, `step:12` is a step, None is the end. Raises click.BadParameter."""
    if text is None:
        return Moment()
    is_step = text.startswith(STEP_PREFIX)
    try:
        found = Moment(step=int(text.removeprefix(STEP_PREFIX))) if is_step else Moment(float(text))
    except ValueError:
        found = Moment(seconds=nan)
    if found.step > 0 if is_step else 0.0 <= found.seconds < inf:
        return found
    problem = f"{text!r} is neither seconds after the first step nor step:NUMBER"
    raise click.BadParameter(problem, ctx=ctx, param=param)


def answer_from_tape(
    tape: Path, at: Moment, target: transport.Target, question: Question | None = None
) -> bytes:
    """The explanation as JSON. Raises TapeError, OSError, SettingsError, QuestionError.

    It is that of this version: where the steps of the tape were decided otherwise, stderr says so.
    """
    header, steps = read(tape)
    engine = parse(header.configuration).engine()
    with Progress(f"repeating {tape.name}", unit="steps") as progress:
        last, now = repeat(engine, steps, at, progress)
    if not last:
        raise TapeError(f"{tape} has no steps")
    if last < at.step:
        raise TapeError(f"{tape} has {last} steps and no step {at.step}")
    key = target.namespace, target.name
    found: object
    match target.kind:
        case "pod" if question is not None:
            found = engine.read(what_if_explanation, key, question, now)
        case "pod":
            found = explain_pod(engine, *key, now)
        case "node":
            found = engine.read(node_explanation, target.name)
        case "job":
            labels = [(label, target.name) for label in (JOB_NAME_LABEL, DAG_JOB_LABEL)]
            found = engine.read(job_explanation, key, labels, now)
    return msgspec.json.encode(found)


def repeat(engine: Engine, steps: Iterator[Step], at: Moment, progress: Progress) -> tuple[int, float]:
    """Take the engine through the steps up to a moment. The last step by then, and the time on its clock."""
    number, now, end, is_equal = 0, 0.0, inf, True
    for step in steps:
        end = min(end, step.now + at.seconds)
        if step.now > end:
            break
        number, now = number + 1, step.now
        decided = tuple(engine.step(step.events, now))
        if is_equal and decided != step.commands:
            is_equal = False
            click.echo(f"note: step {number} was decided otherwise when the tape was recorded", err=True)
        progress(number)
        if number == at.step:
            return number, now
    return number, end if end < inf else now


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

Output = Literal["table", "json", "yaml"]


@click.command()
@click.argument("what", metavar="pod/NAME|node/NAME|job/NAME")
@click.option(
    "-n",
    "--namespace",
    help="Namespace of the pod or job. By default that of the kubeconfig's context, of a tape `default`.",
)
@output_option(Output, "Output format; times are seconds before or after the moment of the answer.")
@click.option(
    "--from",
    "tape",
    metavar="TAPE",
    type=FILE,
    help="Answer from a recorded TAPE (eclectus scheduler --record), without a cluster.",
)
@click.option(
    "--at",
    callback=read_moment,
    metavar="SECONDS|step:NUMBER",
    help="The moment of the tape: seconds after its first step, or right after a step. By default its end.",
)
@click.option(
    "--what-if",
    multiple=True,
    metavar="CHANGE",
    help="Explain a pod that waits as if something were other than it is; may be given several times.",
)
@click.option(
    "--as-policy",
    default="",
    metavar="NAME",
    help="Where this Place policy would put the pod, with its defaults (eclectus policies lists them).",
)
@click.option(
    "--scheduler-name",
    default="",
    metavar="NAME",
    help="Ask the installation that serves this schedulerName. By default that of the pod, or else eclectus.",
)
@click.option(
    "--server",
    default="",
    metavar="URL",
    help="Ask the scheduler at this URL. By default the leader that the Lease names, by a port-forward.",
)
@click.option(
    "--certificate-authority",
    type=FILE,
    help="Authority of the certificate of --server. By default it must be the one that the Lease names.",
)
@click.option(
    "--token-file",
    type=FILE,
    help="File with the bearer token that says who asks. By default the token of the kubeconfig.",
)
@kubeconfig_options
def explain(
    *,
    what: str,
    namespace: str | None,
    output: Output,
    tape: Path | None,
    at: Moment,
    what_if: tuple[str, ...],
    as_policy: str,
    scheduler_name: str,
    server: str,
    certificate_authority: Path | None,
    token_file: Path | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Explain why a pod waits or where it has gone, why a node gets no pods, or why the pods of a job wait.

    \b
    Of a pod that waits:
      where it waits, for what, since when, and when it is examined next
      each rule in kube-scheduler's order, with how many nodes it leaves
      the nodes that lack least, and what would have to change there
      which pods could be evicted for it, or why none
      its failed attempts and the last report

    Of a bound pod: its node, and what is known of the decision. Of a node: what it holds, what is learned of
    it, and why it does not take the pods that wait. Of a Job or DagJob: its pods that wait, in groups of
    those that are alike.

    \b
    A CHANGE is a list of KEY=VALUE with commas between, of one of these:
      node=NAME,…            of a node: taint-=KEY, taint+=KEY=VALUE:EFFECT, label-=KEY, label+=KEY=VALUE,
                             cordon=true|false, allocatable.RESOURCE=QUANTITY
      add-node-like=NAME,…   more nodes like this one: count=NUMBER, and all that node= knows
      delete-pod=NS/NAME     a pod on a node
      …                      of the pod itself: request.RESOURCE=QUANTITY, selector-=KEY,
                             toleration+=KEY=VALUE:EFFECT, priority=NUMBER

    \b
    Permissions of the caller, unless --from or --server is given:
      get pods                      the pod, or of a job all pods of its namespace; for a node, get nodes
      get leases                    eclectus-serves-NAME in kube-system, and the scheduler's own
      get, create pods/portforward  in the scheduler's namespace
    """
    source = transport.Source(scheduler_name, server, certificate_authority, token_file)
    asked = transport.Asked(what_if, as_policy)
    if tape is not None:
        if source != transport.Source():
            raise click.UsageError("--from asks no scheduler: leave out the options that say which and how")
        target = transport.target_of(what, namespace or "default")
        body = answer_from_tape(tape, at, target, asked.question(target))
    else:
        from eclectus.kubeclient import credentials

        if at != Moment():
            raise click.UsageError("--at is a moment of a tape: give --from too")
        target = transport.target_of(what, namespace or default_namespace(kubeconfig, context))
        asked.question(target)  # what is wrong with it is said without a scheduler
        answer = transport.answer_from_scheduler(credentials.load(kubeconfig, context), target, source, asked)
        body = asyncio.run(awaited(answer, "asking the scheduler"))
    click.echo(formatted(body, target, output, asked))


def formatted(
    body: bytes, target: transport.Target, output: Output, asked: transport.Asked = transport.NOTHING_ELSE
) -> str:
    """The text to print for an answer in JSON."""
    if output == "json":
        return msgspec.json.format(body, indent=2).decode()
    if output == "yaml":
        return structured(msgspec.json.decode(body), output)
    if asked != transport.NOTHING_ELSE:
        return "\n".join(what_if_lines(msgspec.json.decode(body, type=WhatIfExplanation)))
    kind, lines = _FORMS[target.kind]
    return "\n".join(lines(msgspec.json.decode(body, type=kind)))


_FORMS: dict[transport.Kind, tuple[type[Any], Callable[[Any], Iterator[str]]]] = {
    "pod": (PodExplanation, pod_lines),
    "node": (NodeExplanation, node_lines),
    "job": (JobExplanation, job_lines),
}
