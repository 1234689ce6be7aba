"""Upstream's e2e.test with the specs of [sig-scheduling], of the version of the control plane."""

from pathlib import Path

from eclectus_e2e.paths import UPSTREAM_MODULE
from eclectus_e2e.testbed.controlplane.build import GoPrograms, binaries

_NAME = "e2e.test"
E2E_TEST = GoPrograms(
    title="upstream's specs",
    build_time="about a minute after the control plane",
    folder="upstream",
    packages=270,
    module=UPSTREAM_MODULE,
    programs={_NAME: "."},  # the module itself
)


def e2e_test() -> Path:
    """The program, compiled on first use."""
    return binaries(E2E_TEST) / _NAME
