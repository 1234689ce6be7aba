"""An operator process under the chart's own ServiceAccount, to start, kill and replace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from eclectus.api.names import API_VERSION, NODE_PROBE, WORK_SECONDS
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.chart import Installed, Values
from eclectus_e2e.testbed.controlplane.components import audit_log
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.testbed.processes import wait_for
from eclectus_e2e.usage import peak_mebibytes
from eclectus_hack.permissions import Permission, granted, requests, superfluous
from live_cluster import wait

# For tests of a Lease that expires.
QUICK = ("--look-seconds=5", "--lease-duration=10", "--renew-deadline=6", "--retry-period=0.5")
# For tests of what it does while it leads: on a busy machine it keeps the Lease.
PATIENT = ("--look-seconds=5", "--lease-duration=15", "--renew-deadline=11", "--retry-period=1")
LOG_SECONDS = 15.0


class Operator:
    """One replica; its arguments are the chart's, with other times and a free port."""

    def __init__(
        self,
        directory: Path,
        kubeconfig: Path,
        installed: Installed,
        name: str = "a",
        times: Iterable[str] = PATIENT,
    ) -> None:
        token = chart.service_account_kubeconfig(
            kubeconfig, directory, installed.namespace, installed.operator_account
        )
        ours = ("--address", "--port")
        given = [each for each in installed.operator_arguments if not each.startswith(ours)]
        self._command = [sys.executable, "-m", "eclectus_operator", *given, *times]
        self._command += ["--port=0", f"--kubeconfig={token}"]
        self.log = directory / f"operator-{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it; its log is appended to that of an earlier run."""
        bare = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stderr=log, stdin=subprocess.DEVNULL, env=bare)
        return self

    def count_in_log(self, text: str) -> int:
        """How often its log contains this text."""
        return self.log.read_text().count(text)

    def wait_leading(self, times: int = 1) -> Self:
        """Wait until it has acquired the Lease for the `times`-th time."""
        wait(f"{self.log.name} leads", lambda: self.count_in_log("leading") >= times)
        return self

    @property
    def address(self) -> str:
        """The address of its health checks."""
        return self.log.read_text().rpartition("serving health checks and metrics on ")[2].split()[0]

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        assert self._process is not None
        return self._process.poll()

    @property
    def peak_mebibytes(self) -> float:
        """The most memory that the process has held."""
        assert self._process is not None
        return peak_mebibytes(self._process.pid)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(60)


def rights_of_operator(values: Values) -> set[Permission]:
    """What the chart, installed with these values, grants to its operator."""
    label = ("app.kubernetes.io/component", "operator")
    return granted(
        each for each in chart.render(values) if label in each["metadata"].get("labels", {}).items()
    )


def unused(rights: set[Permission], plane: ControlPlane, user: str) -> set[Permission]:
    """Those of a user's rights that the audit log has no request for, also a moment after the last answer."""

    def found() -> set[Permission]:
        return superfluous(rights, requests(audit_log(plane.directory), user))

    wait_for(lambda: not found(), LOG_SECONDS)  # the API server writes it after it has answered
    return found()


def node_probe(name: str, selector: dict[str, str], work: float = 0.5, **spec: Any) -> Any:
    """A NodeProbe whose pods the fake kubelet runs for `work` seconds each, as often as the limits allow."""
    template = {
        "metadata": {"annotations": {WORK_SECONDS: str(work)}},
        "spec": {
            "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}]
        },
    }
    limits = {"perHour": 3600, "leastPerHour": 3600, "running": 3, "nodeIntervalSeconds": 0}
    return {
        "apiVersion": API_VERSION,
        "kind": NODE_PROBE,
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": selector,
            "classes": [{"name": "bench", "template": template}],
            **spec,
            "limits": {**limits, **spec.get("limits", {})},
        },
    }
