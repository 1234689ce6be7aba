"""Shell completion: scripts for the shells, and the answers that kubectl asks of its plugins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

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
