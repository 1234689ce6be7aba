"""docs/reference/permissions.md: what the chart's roles grant, with the reasons from the chart's README."""

import re
from collections.abc import Iterable, Iterator, Mapping

import click

from eclectus.cli.main import program
from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed.chart import Object, render
from eclectus_hack.permissions import Permission, granted
from eclectus_hack.reference.markdown import code, head, table

INTRODUCTION = """\
What the chart grants with its default values and `operator.enabled=true`, in the release `eclectus` of
the namespace `eclectus-system`. Tests compare these permissions with the requests that are made. [The
chart](../../charts/eclectus/README.md) says which value removes which permission."""
HEADS = ["where", "API group", "resource", "name", "verbs", "why"]
ROW = re.compile(
    r"\| [^|]+ \| (?P<group>[^|]+) \| `(?P<resource>[^`|]+)`[^|]* \| (?P<verbs>[^|]+) \| (?P<why>[^|]+) \|"
)
CALLER = "Permissions of the caller"

Reasons = Mapping[tuple[str, str, str], str]


def page() -> str:
    """The text of the page."""
    objects = render({"operator": {"enabled": True}})
    parts = [head("Permissions", "the chart's roles and its README", INTRODUCTION)]
    for component, reasons in _reasons((CHART / "README.md").read_text()).items():
        parts += [f"## The {component}\n", table(HEADS, _rows(_of(objects, component), reasons))]
    parts += ["## People who call `eclectus`\n", *_callers()]
    return "\n".join(parts)


def _of(objects: Iterable[Object], component: str) -> set[Permission]:
    label = "app.kubernetes.io/component"
    return granted(each for each in objects if each["metadata"].get("labels", {}).get(label) == component)


def _rows(permissions: Iterable[Permission], reasons: Reasons) -> Iterator[list[str]]:
    """A row for each resource and reason, with its verbs. Raises UsageError for one without a reason."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for each in sorted(permissions, key=lambda one: (one.namespace, one)):
        key = (each.group, each.resource, each.verb)
        if key not in reasons:
            raise UsageError(f"the chart's README, Permissions, has no row for {each}")
        where = f"namespace {code(each.namespace)}" if each.namespace else "cluster"
        row = where, each.group or "core", code(each.resource), code(each.name), reasons[key]
        rows.setdefault(row, []).append(each.verb)
    return ([*row[:4], ", ".join(sorted(verbs)), row[4]] for row, verbs in rows.items())


def _reasons(readme: str) -> dict[str, Reasons]:
    """Component -> (group, resource, verb) -> why, from the two tables of the README's section."""
    section = readme.partition("\n## Permissions\n")[2].partition("\n## ")[0]
    scheduler, _, operator = section.partition("\nWith `operator.enabled`")
    return {
        component: {
            (match["group"].replace("core", ""), match["resource"], verb.strip()): match["why"]
            for match in ROW.finditer(text)
            for verb in match["verbs"].split(",")
        }
        for component, text in (("scheduler", scheduler), ("operator", operator))
    }


def _callers() -> Iterator[str]:
    """What each command needs that reads the cluster as its caller, from its help."""
    context = click.Context(program)
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        needs = (command.help or "").partition(CALLER)[2] if command else ""
        if needs:
            lines = [line.strip() for line in needs.partition(":")[2].strip().splitlines() if line.strip()]
            yield f"`eclectus {name}`{needs.partition(':')[0]}:\n"
            yield "".join(f"- {re.sub(r'  +', ': ', line)}\n" for line in lines)
