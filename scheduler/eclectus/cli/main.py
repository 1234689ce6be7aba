"""`eclectus …` and `kubectl eclectus …`: one program with a table of commands, and its shell completion.

Exit codes: 0 success, 1 the command has failed, 2 its arguments or its configuration are invalid.
"""

import atexit
import gc
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, cast

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete
from typing_extensions import override

from eclectus import __version__
from eclectus.model.errors import EclectusError, SettingsError

VARIABLE = "_ECLECTUS_COMPLETE"  # set by the scripts when they call the program for its completions
# What kubectl reads in the last line: bits of cobra's ShellCompDirective.
DEFAULT, NO_FILES = ":0", ":4"
SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> None:
    """Print the completion script of a SHELL.

    \b
    bash:  source <(eclectus completion bash)         in ~/.bashrc; bash 4.4 or newer
    zsh:   source <(eclectus completion zsh)          in ~/.zshrc, after compinit
    fish:  eclectus completion fish > ~/.config/fish/completions/eclectus.fish

    `kubectl eclectus` is completed by kubectl's own completion (kubectl completion --help), which calls the
    program kubectl_complete-eclectus; it is installed beside eclectus and has to be on the PATH.
    """
    root = click.get_current_context().find_root().command
    click.echo(SHELLS[shell](root, {}, "eclectus", VARIABLE).source())


def for_kubectl(program: click.Command, words: Sequence[str]) -> Iterator[str]:
    """The lines that kubectl expects: the candidates for the last word with their help, then a directive."""
    *given, incomplete = words or [""]
    items = ShellComplete(program, {}, "kubectl eclectus", VARIABLE).get_completions(given, incomplete)
    for item in items:
        if item.type == "plain":
            yield f"{item.value}\t{item.help or ''}".rstrip("\t")
    yield DEFAULT if any(item.type in ("file", "dir") for item in items) else NO_FILES


class Entry(NamedTuple):
    """A command: its module in `eclectus.cli`, which is imported when it is used, and what it does."""

    module: str
    does: str


COMMANDS = {
    "scheduler": Entry("scheduler", "Schedule pods: the process that runs in a cluster."),
    "pending": Entry("pending", "List pods that wait for a node, with the reasons."),
    "explain": Entry("explain.command", "Explain why a pod, a node or a job waits, or what would help."),
    "speeds": Entry("speeds", "Show the learned speed of every node."),
    "dag": Entry("dag", "Show DAG jobs, and what is planned for them."),
    "pools": Entry("pools.command", "Show the tree of Pools, or import queues of other systems."),
    "ui": Entry("ui.command", "Serve a page that shows the queue, nodes, pools and jobs."),
    "check-config": Entry("configurations", "Validate a SchedulerConfiguration file."),
    "config": Entry("configurations", "Translate a configuration of kube-scheduler."),
    "policies": Entry("configurations", "List the policies, or explain one and its settings."),
    "simulate": Entry("simulate", "Compare profiles in a scenario, without a cluster."),
    "scenarios": Entry("simulate", "List the scenarios that come with Eclectus."),
    "record": Entry("record", "Record what the leader of a cluster decides, for some minutes."),
    "replay": Entry("replay", "Check that a recorded tape is decided again as it was."),
    "version": Entry("version", "Show versions, and those of the schedulers in a cluster."),
    "completion": Entry("main", "Print the completion script of a shell."),
}

EXTRAS = {
    "cli": ("aiohttp", "httptools", "kubernetes"),
    "live": ("cryptography", "prometheus_client", "uvloop"),
}
"""Packages that only these extras bring: what reads a cluster needs them, and simulations do not."""


class Commands(click.Group):
    """The table of commands. The scheduler starts without importing the simulator and its formats."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"eclectus.cli.{COMMANDS[cmd_name].module}")
        return cast(click.Command, getattr(module, cmd_name.replace("-", "_")))

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table: no command is imported to be listed."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.does) for name, entry in COMMANDS.items()])

    @override
    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Likewise."""
        found = [(name, each.does) for name, each in COMMANDS.items() if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=does) for name, does in found), *options]

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from eclectus.model.printed import nearest

            raise click.UsageError(f"No such command {args[0]!r}; {nearest(args[0], list(COMMANDS))}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="eclectus")
def program() -> None:
    """A Kubernetes scheduler that learns how fast each node is."""


def main() -> None:
    """The entry point of both console scripts."""
    # Its last act would be a collection of everything that was imported: a sixth of the time of a table.
    atexit.register(gc.freeze)
    name = "kubectl eclectus" if Path(sys.argv[0]).name.startswith("kubectl-") else "eclectus"
    try:
        program.main(prog_name=name, complete_var=VARIABLE)
    except ModuleNotFoundError as error:
        _fail([_extra_for(error)], 1)
    except SettingsError as error:
        _fail(error.lines(), 2)
    except (EclectusError, OSError) as error:
        _fail([str(error)], 1)


def complete_for_kubectl() -> None:
    """The entry point of kubectl_complete-eclectus, which kubectl calls with the words typed so far."""
    for line in for_kubectl(program, sys.argv[1:]):
        click.echo(line)


def _extra_for(error: ModuleNotFoundError) -> str:
    """What brings the package that is missing. Raises the error again for a package of ours."""
    package = (error.name or "").partition(".")[0]
    if package == "numpy":
        return "this command needs the package numpy, which the plugin of krew leaves out: pip brings both"
    extra = next((name for name, packages in EXTRAS.items() if package in packages), None)
    if extra is None:
        raise error
    return f"this command needs the package {package}: from a checkout, pip install '.[{extra}]' brings it"


def _fail(problems: list[str], code: int) -> None:
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    if len(problems) > 1:
        click.echo(f"{len(problems)} errors", err=True)
    sys.exit(code)
