"""The command `explain`: its options, and the forms of its answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import click
import msgspec
import yaml

from eclectus.cli.explain.from_tape import Moment, answer_from_tape, read_moment
from eclectus.cli.explain.job_text import job_lines
from eclectus.cli.explain.node_text import node_lines
from eclectus.cli.explain.pod_text import pod_lines
from eclectus.cli.explain.target import Target, target_of
from eclectus.model.explanation import JobExplanation, NodeExplanation, PodExplanation

Output = Literal["table", "json", "yaml"]


@click.command()
@click.argument("what", metavar="pod/NAME|node/NAME|job/NAME")
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the pod or job.")
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
    required=True,
    metavar="TAPE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Answer from a recorded TAPE (eclectus scheduler --record), without a cluster.",
)
@click.option(
    "--at",
    callback=read_moment,
    metavar="SECONDS|step:NUMBER",
    help="The moment of the tape: seconds after its first step, or right after a step. By default its end.",
)
def explain(*, what: str, namespace: str, output: Output, tape: Path, at: Moment) -> None:
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
    """
    target = target_of(what, namespace)
    body = answer_from_tape(tape, at, target)
    click.echo(formatted(body, target, output))


def formatted(body: bytes, target: Target, output: Output) -> str:
    """The text to print for an answer in JSON."""
    if output == "json":
        return msgspec.json.format(body, indent=2).decode()
    if output == "yaml":
        return str(yaml.safe_dump(msgspec.json.decode(body), sort_keys=False)).rstrip("\n")
    return "\n".join(_lines(body, target))


def _lines(body: bytes, target: Target) -> Iterator[str]:
    match target.kind:
        case "node":
            return node_lines(msgspec.json.decode(body, type=NodeExplanation))
        case "job":
            return job_lines(msgspec.json.decode(body, type=JobExplanation))
        case "pod":
            return pod_lines(msgspec.json.decode(body, type=PodExplanation))
