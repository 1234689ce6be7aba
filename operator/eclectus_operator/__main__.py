"""`python -m eclectus_operator`: the command line, with one option for each setting."""

import asyncio
import dataclasses
import logging
import os
import sys
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

import click
import kopf

from eclectus.api.common import SERVER_LEVELS_MOST
from eclectus.kubeclient.api_errors import CredentialsError, ListenError
from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting, types_of
from eclectus_operator.deep_json import decode_deep_objects
from eclectus_operator.program import run
from eclectus_operator.settings import LeaseSettings, ServerSettings, Settings

PARTS: tuple[type[Any], ...] = (Settings, LeaseSettings, ServerSettings)


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for part in reversed(PARTS):
        hints = types_of(part)
        for field in reversed(dataclasses.fields(part)):
            command = _option(field, hints[field.name])(command)
    return command


def _option(field: dataclasses.Field[Any], kind: Any) -> Any:
    setting: Setting = field.metadata[Setting]
    meaning = f"{setting.means} ({setting.why})" if setting.why else setting.means
    if get_origin(kind) is Literal:
        kind = click.Choice(get_args(kind))
    elif kind in (int, float):
        ranged = click.IntRange if kind is int else click.FloatRange
        kind = ranged(setting.least, setting.most)  # type: ignore[arg-type]
    required = field.default is dataclasses.MISSING
    # click takes an explicit default of None for a default, so a required option gets none.
    default: dict[str, Any] = {} if required else {"default": field.default, "show_default": True}
    text = f"{meaning} [{setting.unit}]." if setting.unit else f"{meaning}."
    return click.option(
        "--" + field.name.replace("_", "-"), type=kind, required=required, help=text, **default
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@_options
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    help="Kubeconfig to use instead of the pod's ServiceAccount.",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--verbose", is_flag=True, help="Log at debug level, kopf's own messages included.")
def main(kubeconfig: str | None, log_format: str, verbose: bool, **given: Any) -> None:
    """Run benchmark pods as NodeProbe objects ask for. Of several replicas one leads at a time."""
    # kopf decodes whole objects, and ends where one is nested deeper than Python's limit of 1,000.
    sys.setrecursionlimit(3 * SERVER_LEVELS_MOST)
    decode_deep_objects()
    if kubeconfig:
        os.environ["KUBECONFIG"] = kubeconfig  # kopf's login reads it
    log_format_of_kopf = kopf.LogFormat.JSON if log_format == "json" else kopf.LogFormat.FULL
    kopf.configure(verbose=verbose, log_format=log_format_of_kopf)
    if not verbose:  # kopf logs a line for every event
        logging.getLogger("kopf").setLevel(logging.WARNING)
    # kopf warns that it receives no signals; program.py handles them.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
    try:
        parts = [part(**_of(part, given)) for part in PARTS]
    except (ValueError, SettingsError) as error:
        raise click.UsageError(str(error)) from error
    try:
        sys.exit(asyncio.run(run(*parts)))
    except (kopf.LoginError, ListenError, CredentialsError) as error:
        raise click.ClickException(str(error)) from error


def _of(part: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    return {field.name: given[field.name] for field in dataclasses.fields(part)}


if __name__ == "__main__":
    main()
