"""Credentials that a command prints: exec plugins of kubeconfigs, by which users of cloud providers log in.

Kubernetes' authentication reference, "client-go credential plugins": the command reads what it is asked from
the variable KUBERNETES_EXEC_INFO, and prints an ExecCredential with a token, or a certificate and its key.
It is run again shortly before what it printed expires, and never while that is valid: it may ask its user.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from eclectus.kubeclient.api_errors import CredentialsError

GROUP = "client.authentication.k8s.io/"
EARLY_SECONDS = 120.0  # before the end it is renewed: twice the time between two looks
INFO = "KUBERNETES_EXEC_INFO"


class Printed(NamedTuple):
    """What the command has printed; of token and PEM one may be empty."""

    token: str
    pem: bytes  # certificate and key
    expires: float  # seconds since the epoch


class ExecPlugin:
    """The plugin of a user; `cluster`: what it gets to know of that, None where it does not ask for it."""

    def __init__(self, config: Mapping[str, Any], file: Path, cluster: Mapping[str, Any] | None) -> None:
        self._version = str(config.get("apiVersion") or "")
        self._command = str(config.get("command") or "")
        if not self._version.startswith(GROUP) or not self._command:
            raise CredentialsError(f"{file}: an exec plugin needs a command and an apiVersion {GROUP}…")
        # As kubectl: with a folder in it, the name is relative to the kubeconfig.
        is_path = os.sep in self._command
        self._arguments = [str(file.parent / self._command) if is_path else self._command]
        self._arguments += map(str, config.get("args") or ())
        self._variables = {str(each.get("name")): str(each.get("value")) for each in config.get("env") or ()}
        self._may_ask = config.get("interactiveMode") != "Never"
        self._hint = str(config.get("installHint") or "")
        self._file, self._cluster = file, cluster
        self._printed: Printed | None = None

    def current(self) -> Printed:
        """What it has printed, or prints now if that is about to expire. Raises CredentialsError."""
        if self._printed is None or time.time() >= self._printed.expires - EARLY_SECONDS:
            self._printed = self._read(self._run())
        return self._printed

    def _run(self) -> bytes:
        is_asking = self._may_ask and sys.stdin is not None and sys.stdin.isatty()
        spec: dict[str, Any] = {"interactive": is_asking}
        if self._cluster is not None:
            spec["cluster"] = dict(self._cluster)
        info = {"apiVersion": self._version, "kind": "ExecCredential", "spec": spec}
        try:
            done = subprocess.run(  # noqa: S603 - as kubectl runs it for the same file
                self._arguments,
                stdin=None if is_asking else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if is_asking else subprocess.PIPE,
                env={**os.environ, **self._variables, INFO: json.dumps(info)},
                check=False,
            )
        except OSError as error:
            raise self._problem(f"cannot be run: {error}. {self._hint}") from error
        if done.returncode:
            said = (done.stderr or b"").decode(errors="replace").strip()
            raise self._problem(f"has failed with exit code {done.returncode}: {said}")
        return done.stdout

    def _read(self, output: bytes) -> Printed:
        try:
            answer = json.loads(output)
            if (answer["apiVersion"], answer["kind"]) != (self._version, "ExecCredential"):
                raise self._problem(f"has not printed an ExecCredential of {self._version}")
            status = answer["status"]
            token, until = str(status.get("token") or ""), status.get("expirationTimestamp")
            pair = [str(status.get(each) or "") for each in ("clientCertificateData", "clientKeyData")]
            expires = datetime.fromisoformat(until).timestamp() if until else inf
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._problem("has printed no ExecCredential that can be read") from error
        if not all(pair) and (any(pair) or not token):
            raise self._problem("has printed neither a token nor a certificate with its key")
        return Printed(token, "\n".join(pair).encode() if all(pair) else b"", expires)

    def _problem(self, text: str) -> CredentialsError:
        return CredentialsError(f"{self._file}: the plugin {self._command} {text}".rstrip(": ."))
