"""The text of an explanation of a job."""

from __future__ import annotations

from collections.abc import Iterator

from eclectus.cli.columns import aligned
from eclectus.cli.explain.words import count
from eclectus.model.explanation import JobExplanation


def job_lines(job: JobExplanation) -> Iterator[str]:
    """The lines of the text."""
    yield from aligned([("Job:", f"{job.namespace}/{job.name}"), ("Pods:", job.summary)])
    if job.groups:
        yield ""
        heads = ["PODS", "STATE", "FOR EXAMPLE", "WHY"]
        rows = [
            [str(each.pods), each.state, each.example, f"{each.reason}; {each.message}".rstrip("; ")]
            for each in job.groups
        ]
        yield from aligned([heads, *rows])
    if job.not_listed:
        yield f"and {count(job.not_listed, 'pod')} of other kinds"
