"""Pushes images and the chart to a registry, with go-containerregistry's crane and with helm.

Both log in with what `docker login` or their own `login` has stored. A registry on this machine is reached
without TLS.
"""

import re
from pathlib import Path

from eclectus_e2e.errors import BuildError
from eclectus_e2e.paths import CRANE_MODULE
from eclectus_e2e.testbed.controlplane.build import GoPrograms, binaries
from eclectus_e2e.testbed.helm import HELM
from eclectus_e2e.testbed.images.shell import run

CRANE = GoPrograms(
    title="crane, which copies images",
    build_time="a minute on two idle cores",
    folder="crane",
    packages=300,
    module=CRANE_MODULE,
    programs={"crane": "github.com/google/go-containerregistry/cmd/crane"},
)
CHARTS = "charts"  # the folder of charts in a registry
_LOCAL = re.compile(r"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?(/|$)")


def push_image(layout: Path, reference: str, digest: str) -> None:
    """Push an image for all its architectures. Raises BuildError with crane's output."""
    pushed = _digest(run(binaries(CRANE) / "crane", "push", "--index", layout, reference))
    if pushed != digest:
        raise BuildError(f"{reference} was pushed as {pushed}, not as {digest}")


def push_chart(package: Path, registry: str) -> str:
    """Push the packaged chart; returns the digest. Raises BuildError with helm's output."""
    plain = ("--plain-http",) if is_local(registry) else ()
    printed = run(binaries(HELM) / "helm", "push", package, f"oci://{registry}/{CHARTS}", *plain)
    return _digest(printed)


def is_local(registry: str) -> bool:
    """Whether a registry is on this machine."""
    return _LOCAL.match(registry) is not None


def _digest(printed: str) -> str:
    found = re.findall(r"sha256:[0-9a-f]{64}", printed)
    if not found:
        raise BuildError(f"no digest in what was printed: {printed.strip()}")
    return str(found[-1])
