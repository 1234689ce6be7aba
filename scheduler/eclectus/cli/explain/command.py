"""The command `explain`: its options, and the forms of its answer."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from eclectus.cli.cluster_commands import FILE, awaited, kubeconfig_options, output_option, server_options
from eclectus.cli.explain import transport
from eclectus.cli.explain.explained_text import job_lines, node_lines, pod_lines, what_if_lines
from eclectus.cli.explain.moment import Moment, read_moment
from eclectus.cli.output import structured
from eclectus.kubeclient.kubeconfigs import default_namespace
from eclectus.model.explanation import JobExplanation, NodeExplanation, PodExplanation, WhatIfExplanation

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
@server_options("Ask", "that of the pod, or else eclectus")
@click.option(
    "--graph",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also draw the pod's part of the last flow problem (place: quincy) into this file, as HTML.",
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
    graph: Path | None,
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
    With the chart's visibility.enabled, what `view` has suffices for pods and jobs. Otherwise also:
      get leases                    eclectus-serves-NAME in kube-system, and the scheduler's own
      get, create pods/portforward  in the scheduler's namespace
    """
    source = transport.Source(scheduler_name, server, certificate_authority, token_file)
    asked = transport.Asked(what_if, as_policy)
    if tape is not None:
        if source != transport.Source():
            raise click.UsageError("--from asks no scheduler: leave out the options that say which and how")
        from eclectus.cli.explain.from_tape import answer_from_tape

        target = transport.target_of(what, namespace or "default")
        body = answer_from_tape(tape, at, target, asked.question(target))
    else:
        from eclectus.kubeclient import credentials

        if at != Moment():
            raise click.UsageError("--at is a moment of a tape: give --from too")
        target = transport.target_of(what, namespace or default_namespace(kubeconfig, context))
        asked.check(target)  # what is wrong with it is said without a scheduler
        answer = transport.answer_from_scheduler(credentials.load(kubeconfig, context), target, source, asked)
        body = asyncio.run(awaited(answer, "asking the scheduler"))
    click.echo(formatted(body, target, output, asked))
    if graph is not None:
        draw(body, target, asked, graph)


def draw(body: bytes, target: transport.Target, asked: transport.Asked, graph: Path) -> None:
    """Write the picture of a pod's part of a flow problem. Raises click.UsageError where there is none."""
    if target.kind != "pod" or asked != transport.NOTHING_ELSE:
        raise click.UsageError("--graph draws what is the case for a pod: pod/NAME, without --what-if")
    from eclectus.cli.explain.flow_graph import flow_page

    try:
        graph.write_text(flow_page(msgspec.json.decode(body, type=PodExplanation)))
    except LookupError as error:
        raise click.UsageError(str(error.args[0])) from error


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
