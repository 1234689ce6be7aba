"""The command `explain`: its options, and the forms of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import click
import msgspec

from eclectus.cli.cluster_commands import awaited, default_namespace, kubeconfig_options
from eclectus.cli.columns import structured
from eclectus.cli.explain.explained_text import job_lines, node_lines, pod_lines, what_if_lines
from eclectus.cli.explain.from_tape import Moment, answer_from_tape, read_moment
from eclectus.cli.explain.target import NOTHING_ELSE, Asked, Target, target_of
from eclectus.cli.explain.transport import Source, answer_from_scheduler
from eclectus.explain.what_if import WhatIfExplanation
from eclectus.model.explanation import JobExplanation, NodeExplanation, PodExplanation

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

Output = Literal["table", "json", "yaml"]


@click.command()
@click.argument("what", metavar="pod/NAME|node/NAME|job/NAME")
@click.option(
    "-n",
    "--namespace",
    help="Namespace of the pod or job. By default that of the kubeconfig's context, of a tape `default`.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Output format; times are seconds before or after the moment of the answer.",
)
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
    source, asked = (
        Source(scheduler_name, server, certificate_authority, token_file),
        Asked(what_if, as_policy),
    )
    if tape is not None:
        if source != Source():
            raise click.UsageError("--from asks no scheduler: leave out the options that say which and how")
        target = target_of(what, namespace or "default")
        body = answer_from_tape(tape, at, target, asked.question(target))
    else:
        if at != Moment():
            raise click.UsageError("--at is a moment of a tape: give --from too")
        target = target_of(what, namespace or default_namespace(kubeconfig, context))
        asked.question(target)  # what is wrong with it is said without a scheduler
        body = _answer_from_scheduler(target, source, asked, kubeconfig, context)
    click.echo(formatted(body, target, output, asked))


def _answer_from_scheduler(
    target: Target, source: Source, asked: Asked, kubeconfig: Path | None, context: str | None
) -> bytes:
    """The answer of a running scheduler, as JSON."""
    from eclectus.kubeclient import credentials

    access = credentials.load(kubeconfig, context)

    async def answer() -> bytes:
        return await awaited(answer_from_scheduler(access, target, source, asked), "asking the scheduler")

    return asyncio.run(answer())


def formatted(body: bytes, target: Target, output: Output, asked: Asked = NOTHING_ELSE) -> str:
    """The text to print for an answer in JSON."""
    if output == "json":
        return msgspec.json.format(body, indent=2).decode()
    if output == "yaml":
        return structured(msgspec.json.decode(body), output)
    return "\n".join(_lines(body, target) if asked == NOTHING_ELSE else _what_if_lines(body))


def _what_if_lines(body: bytes) -> Iterator[str]:
    return what_if_lines(msgspec.json.decode(body, type=WhatIfExplanation))


def _lines(body: bytes, target: Target) -> Iterator[str]:
    match target.kind:
        case "node":
            return node_lines(msgspec.json.decode(body, type=NodeExplanation))
        case "job":
            return job_lines(msgspec.json.decode(body, type=JobExplanation))
        case "pod":
            return pod_lines(msgspec.json.decode(body, type=PodExplanation))
