"""The tables of `eclectus dag`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from eclectus.cli.columns import ABSENT, age, aligned, span
from eclectus.cli.dag.rows import Row
from eclectus.kube.quantity import thousandths

MESSAGE_CHARACTERS = 100  # in the plain table; `-o wide` shows all
_GI = 2**30
_BYTES = ("memory", "ephemeral-storage")


def jobs(found: Sequence[Row], now: datetime, *, all_namespaces: bool, wide: bool) -> Iterator[str]:
    """A line for each job, and below the table what has gone wrong with any."""
    heads = ["NAME", "STATE", "TASKS", "SHARE", "LENT", "BORROWED", "FINISH", "DEADLINE", "AGE"]
    if all_namespaces:
        heads.insert(0, "NAMESPACE")
    if wide:
        heads += ["POOL", "MOVED", "LENT-SECONDS", "BORROWED-SECONDS", "RESERVED"]
    yield from aligned([heads, *(_cells(row, now, all_namespaces, wide) for row in found)])
    for row in found:
        if row["message"]:
            yield f"{row['namespace']}/{row['name']}: {row['message']}"


def stages(row: Row, now: datetime, *, wide: bool) -> Iterator[str]:
    """A line for each stage of a job; a further reason why it waits has a line of its own."""
    heads = ["STAGE", "AFTER", "STATE", "TASKS", "RUNNING", "ESTIMATE", "DUE", "WHY"]
    if wide:
        heads[5:6] = ["WAITING", "FAILED", "RETRIED", "ESTIMATE", "FROM", "TOOK"]
    lines = [heads]
    for stage in row["stages"]:
        first, *others = stage["why"] or [ABSENT]
        cells = _stage_cells(stage, now, wide)
        lines.append([*cells, _shortened(first, wide)])
        lines += [[*[""] * len(cells), _shortened(other, wide)] for other in others]
    return aligned(lines)


def _cells(row: Row, now: datetime, all_namespaces: bool, wide: bool) -> list[str]:
    tasks, finish, moved = row["tasks"], row["finishSeconds"], row["slips"]
    cells = [
        *([row["namespace"]] if all_namespaces else []),
        row["name"],
        row["state"],
        f"{tasks['succeeded']}/{tasks['all']}",
        *(_amounts(row[each]) for each in ("share", "lent", "borrowed")),
        ABSENT if finish is None else span(finish),
        _when(row["deadline"], now),
        age(row["createdTime"], now),
    ]
    if wide:
        cells += [row["pool"] or ABSENT, f"{moved} times, {span(row['slipSeconds'])}" if moved else ABSENT]
        cells += [_amounts(row[each]) for each in ("lentSeconds", "borrowedSeconds")]
        cells.append(row["reservedNode"] or ABSENT)
    return cells


def _stage_cells(stage: Row, now: datetime, wide: bool) -> list[str]:
    """All but the reason."""
    estimate, took = (
        ABSENT if seconds is None else span(seconds)
        for seconds in (stage["estimateSeconds"], stage["runSeconds"])
    )
    counts = [str(stage[each]) for each in ("waiting", "failed", "retried")]
    return [
        stage["name"],
        ",".join(stage["dependsOn"]) or ABSENT,
        stage["state"],
        f"{stage['succeeded']}/{stage['tasks']}",
        str(stage["running"]),
        *([*counts, estimate, stage["estimateSource"], took] if wide else [estimate]),
        _when(stage["due"], now),
    ]


def _amounts(resources: Mapping[str, str | float]) -> str:
    return " ".join(f"{name}={_amount(name, amount)}" for name, amount in resources.items()) or ABSENT


def _amount(resource: str, amount: str | float) -> str:
    """A quantity, or a number of whole units, for people: cores, GiB, or a number."""
    try:
        value = thousandths(amount) / 1000 if isinstance(amount, str) else amount
    except ValueError:
        return str(amount)
    return f"{value / _GI:.4g}Gi" if resource in _BYTES else f"{value:.4g}"


def _when(moment: str | None, now: datetime) -> str:
    """`in 45s` or `12m ago`."""
    if moment is None:
        return ABSENT
    seconds = (datetime.fromisoformat(moment) - now).total_seconds()
    return f"in {span(seconds)}" if seconds >= 0 else f"{span(-seconds)} ago"


def _shortened(text: str, wide: bool) -> str:
    return text if wide or len(text) <= MESSAGE_CHARACTERS else text[: MESSAGE_CHARACTERS - 1] + "…"
