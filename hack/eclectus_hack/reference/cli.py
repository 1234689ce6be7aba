"""docs/reference/cli.md: the help of every command."""

import re
from collections.abc import Iterator

import click

from eclectus.cli.main import program
from eclectus.cli.verbs import WithVerbs
from eclectus_hack.reference.markdown import head

INTRODUCTION = """\
The help of every command of `eclectus`. With `kubectl-eclectus` on the PATH, `kubectl eclectus COMMAND`
is the same. Every command exits with 0 if it succeeded, with 1 if it failed, and with 2 if its arguments
or a file it reads are invalid. All have `--help`; those that read a cluster also have `--kubeconfig FILE` (by
default `$KUBECONFIG`, or else `~/.kube/config`) and `--context TEXT` (by default its current context)."""
WIDTH = 100  # characters of a line of help
SHARED = re.compile(
    r"  -h, --help +Show this message and exit\.\n?"
    r"|  --kubeconfig FILE +Kubeconfig file\. By default \$KUBECONFIG, or else ~/\.kube/config\.\n"
    r"|  --context TEXT +Context of the kubeconfig\. By default its current context\.\n"
)  # what the introduction says once


def page() -> str:
    """The text of the page."""
    top = click.Context(
        program,
        info_name="eclectus",
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=program.context_settings["help_option_names"],
    )
    parts = [head("The command eclectus", "the help of the commands", INTRODUCTION), _help(top)]
    for name in sorted(program.list_commands(top)):
        command = program.get_command(top, name)
        if command is not None:
            parts += _sections(click.Context(command, info_name=name, parent=top))
    return "\n".join(parts)


def _sections(context: click.Context) -> Iterator[str]:
    """The help of a command, and of its own commands."""
    yield f"## {context.command_path}\n"
    yield _help(context)
    if isinstance(context.command, click.Group):
        for name, command in sorted(context.command.commands.items()):
            yield from _sections(click.Context(command, info_name=name, parent=context))
    if isinstance(context.command, WithVerbs):
        for name in sorted(context.command.verbs):
            path, verb = f"{context.info_name} {name}", context.command.verb(name)
            yield from _sections(click.Context(verb, info_name=path, parent=context.parent))


def _help(context: click.Context) -> str:
    help_text = re.split(r"\n(Commands|Verbs):\n", context.get_help())[0]  # each has a section of its own
    text = SHARED.sub("", help_text).rstrip().removesuffix("Options:").rstrip()
    return f"```text\n{text}\n```\n"
