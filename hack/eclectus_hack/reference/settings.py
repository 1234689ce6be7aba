"""docs/reference/settings.md: every setting of a SchedulerConfiguration, from the typed settings."""

from collections.abc import Iterable, Iterator
from typing import Any

from eclectus.api.names import API_VERSION, SCHEDULER_CONFIGURATION
from eclectus.config.described import Described, condition, described, traits, written
from eclectus.config.process_settings import ProcessSettings
from eclectus.config.settings_reading import camel, settings_of
from eclectus.framework import ProfileSettings
from eclectus.policies.table import CLASHES, ROLES, Clash
from eclectus_hack import clashes
from eclectus_hack.clashes import CLASHING_ROLES
from eclectus_hack.reference.markdown import code, head, table

INTRODUCTION = """\
Every setting of a SchedulerConfiguration. [Configure](../configuration.md) says which to choose. Times
are numbers of seconds or durations: `250ms`, `15s`, `2m`, `1h30m`. `eclectus check-config --effective
FILE` prints a file with all of these filled in, and `eclectus policies NAME` explains those of a policy."""
TOP = [
    ("`apiVersion`", code(API_VERSION), "required", "Version of the format."),
    ("`kind`", code(SCHEDULER_CONFIGURATION), "required", "Kind of the file."),
    ("`seed`", "whole number", "`0`", "Seed of all random choices."),
    ("`learn`", "[a policy](#learn)", "`{policy: rosella}`", "The learner; all profiles share it."),
    ("`profiles`", "list", "required", "At least one profile."),
    ("`profiles[].schedulerName`", "text", "required", "Pods with this `spec.schedulerName` are scheduled."),
    ("`profiles[].order`", "[a policy](#order)", "`{policy: fifo}`", "Which pod is scheduled first."),
    ("`profiles[].place`", "[a policy](#place)", "`{policy: rosella}`", "On which node a pod runs."),
    ("`profiles[].line`", "[a policy](#line)", "`{policy: fifo}`", "In which order a node serves its queue."),
    (
        "`profiles[].relieve`",
        "[a policy](#relieve), or a list of them",
        "`{policy: none}`",
        "Which pods make room for others. Of a list (`[reclaim, preemption]`) each is asked about the "
        "pods for which those before have made no room.",
    ),
    (
        "`profiles[].speculate`",
        "[a policy](#speculate)",
        "`{policy: none}`",
        "Which running pods are late, so that [copies](../stragglers.md) of them are made.",
    ),
    (
        "`profiles[].hold`",
        "[a policy](#hold)",
        "`{policy: none}`",
        "Whether pods wait for nodes with [their data](../data.md).",
    ),
]
REFUSED = """\
A profile is refused if each of its policies is one that a row of this table names; an empty cell stands for
any policy. The reason begins with the field that the message names.
"""
HEADS = ["setting", "values", "default", "meaning", "reason for the default"]


def page() -> str:
    """The text of the page."""
    parts = [head("Settings", "the settings classes of the code", INTRODUCTION)]
    parts += ["## The file\n", table(["field", "values", "default", "meaning"], TOP)]
    parts += ["## Each profile\n", f"{_summary(ProfileSettings)}\n", _settings(described(ProfileSettings))]
    parts += ["## The process\n", *_sections()]
    for role, policies in ROLES.items():
        parts += [f"## {role}\n", table(["policy", "what it is", "traits"], _policies_of(role))]
        for name, kind in policies.items():
            parts += _policy(role, name, kind)
    parts += ["## Combinations that are refused\n", REFUSED, _clashes()]
    return "\n".join(parts)


def _summary(settings_class: type[Any]) -> str:
    """The first paragraph of the class's docstring, on one line."""
    return " ".join((settings_class.__doc__ or "").strip().split("\n\n")[0].split())


def _implications(settings_class: type[Any]) -> Iterator[str]:
    """`mode: paper implies view: sample, …` for each value that implies others."""
    known = settings_of(settings_class)
    for key, (_, _, setting) in known.items():
        for value, implied in (setting.implies if setting else {}).items():
            settings = (
                (camel(name), written(other, known[camel(name)][2])) for name, other in implied.items()
            )
            spelled = ", ".join(f"`{name}: {other}`" for name, other in settings)
            yield f"`{key}: {value}` implies {spelled}."


def _sections() -> Iterator[str]:
    for key, (_, kind, _) in settings_of(ProcessSettings).items():
        yield f"### {key}\n"
        yield f"{_summary(kind)}\n"
        yield _settings(described(kind))


def _policies_of(role: str) -> Iterator[list[str]]:
    """A row for each policy of a role, with a link to its settings."""
    for name, kind in ROLES[role].items():
        link = f"[{code(name)}](#{role}-{name})" if list(described(kind)) else code(name)
        yield [link, _summary(kind), "; ".join(traits(kind))]


def _policy(role: str, name: str, kind: type[Any]) -> Iterator[str]:
    """The settings of a policy, if it has some."""
    if settings := list(described(kind)):
        yield f"### {role}: {name}\n"
        yield _settings(settings)
    for each in _implications(kind):
        yield f"{each}\n"


def _clashes() -> str:
    rows = ([*_policies(clash), f"{code(clash.at)} {clash.problem}."] for clash in CLASHES)
    return table([*CLASHING_ROLES, "reason"], rows)


def _policies(clash: Clash) -> Iterator[str]:
    """A cell for each role: the policies that the clash means; empty for any."""
    known = clashes.named(clash)
    for role in CLASHING_ROLES:
        yield "; ".join(code(name) + condition(said) for name, said in known.get(role, {}).items())


def _settings(settings: Iterable[Described]) -> str:
    return table(
        HEADS, ((code(each.key), each.values, code(each.default), each.means, each.why) for each in settings)
    )
