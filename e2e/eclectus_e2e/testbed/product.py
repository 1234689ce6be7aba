"""Eclectus itself on a cluster of the test bed: the chart, and scheduler and operator as processes beside it.

The processes have the chart's configuration and only its ServiceAccounts' permissions. Unlike pods they
need no image, so they run beside fake nodes too.
"""

import json
import sys
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import helm_python as helm
import yaml

from eclectus_e2e.errors import StartError, UsageError
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.chart import Installed
from eclectus_e2e.testbed.controlplane.endpoint import free_ports
from eclectus_e2e.testbed.processes import Process, log_path, log_tail, start, wait_for

SCHEDULER, OPERATOR = "eclectus", "operator"  # names of the processes and of their logs
READY_SECONDS = 60.0
# Proxies in the environment variables are not for loopback.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Product:
    """An installed release whose processes have their files in `directory`.

    `account` is a kubeconfig whose only credential is a token of the scheduler's ServiceAccount; `address` is
    the URL of the scheduler's health checks, metrics and learned speeds.
    """

    kubeconfig: Path
    directory: Path
    installed: Installed
    account: Path
    address: str
    token_seconds: int  # for how long tokens are valid; they are not renewed


def install(
    kubeconfig: Path,
    directory: Path,
    values: Mapping[str, Any] | None = None,
    token_seconds: int = chart.TOKEN_SECONDS,
) -> Product:
    """Install the chart and get a token of its scheduler's account. Raises UsageError."""
    try:
        installed = chart.install(kubeconfig, values=values)
    except helm.HelmError as error:
        raise UsageError(f"the chart could not be installed: {error}") from error
    account = chart.service_account_kubeconfig(
        kubeconfig, directory, installed.namespace, installed.service_account, token_seconds
    )
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    return Product(kubeconfig, directory, installed, account, address, token_seconds)


def uninstall(kubeconfig: Path) -> None:
    """Uninstall the chart; prints a hint when that is not possible."""
    try:
        chart.uninstall(kubeconfig)
    except helm.HelmError as error:  # for example, the cluster is gone, and the release with it
        hint = f"helm uninstall {chart.RELEASE} --namespace {chart.NAMESPACE}"
        print(f"warning: `{hint}` failed: {str(error).strip()}", file=sys.stderr)


def start_scheduler(
    product: Product,
    *,
    dies_with_caller: bool,
    name: str = SCHEDULER,
    change: Callable[[dict[str, Any]], None] = lambda _: None,
) -> Process:
    """Start a scheduler with the configuration of the chart's ConfigMap, after `change`.

    Returns when it leads. Its process and log are called `eclectus`, its configuration `NAME.json`. Raises
    StartError with the end of its log.
    """
    configuration = yaml.safe_load(product.installed.configuration)
    # It listens on loopback and a port of its own; the chart's address is for pods.
    configuration["server"] = {"address": "127.0.0.1", "port": int(product.address.rpartition(":")[2])}
    change(configuration)
    file = product.directory / f"{name}.json"
    file.write_text(json.dumps(configuration))  # JSON is YAML
    program = [str(Path(sys.executable).with_name("eclectus")), "scheduler"]
    program += ["--config", str(file), "--kubeconfig", str(product.account)]
    process = start(SCHEDULER, program, product.directory, dies_with_caller=dies_with_caller)
    _wait_ready(process, product.directory, lambda: _leads(product.address))
    return process


def start_operator(product: Product, flags: Sequence[str] = (), *, dies_with_caller: bool) -> Process:
    """Start the operator with the arguments of the chart's Deployment; returns when it leads.

    `flags` (`--name=value`) replace the chart's. Raises StartError with the end of its log, UsageError when
    the release was installed without operator.
    """
    directory, installed = product.directory, product.installed
    account = chart.service_account_kubeconfig(
        product.kubeconfig, directory, installed.namespace, installed.operator_account, product.token_seconds
    )
    (port,) = free_ports(1)
    ours = [
        "--address=127.0.0.1",
        f"--port={port}",
        "--authentication=none",
        f"--kubeconfig={account}",
        *flags,
    ]
    replaced = tuple(flag.partition("=")[0] + "=" for flag in ours)
    given = [flag for flag in installed.operator_arguments if not flag.startswith(replaced)]
    program = [sys.executable, "-m", "eclectus_operator", *given, *ours]
    process = start(OPERATOR, program, directory, dies_with_caller=dies_with_caller)
    log = log_path(directory, OPERATOR)
    _wait_ready(process, directory, lambda: "leading" in log.read_text())
    return process


def body(url: str) -> bytes:
    """The body of the response; empty without one, or when the status is an error."""
    try:
        with _DIRECT.open(url, timeout=2.0) as response:
            return bytes(response.read())
    except OSError:  # not listening yet, or not ready (HTTPError): the caller asks again
        return b""


def _leads(address: str) -> bool:
    return body(f"{address}/readyz") != b"" and b"\neclectus_leader 1.0" in body(f"{address}/metrics")


def _wait_ready(process: Process, directory: Path, is_ready: Callable[[], bool]) -> None:
    """Wait until it is ready. Otherwise stop it and raise StartError."""
    wait_for(lambda: is_ready() or not process.alive, READY_SECONDS)
    ended = not process.alive
    if ended or not is_ready():
        process.stop()
        problem = "ended while starting" if ended else f"was not ready after {READY_SECONDS:.0f} s"
        raise StartError(f"{process.name} {problem}\n{log_tail(directory, process.name)}")
