"""The specs are those of the control plane's version of Kubernetes."""

import re
from pathlib import Path

from eclectus_e2e.paths import GO_MODULE, UPSTREAM_MODULE


def kubernetes(module: Path) -> set[str]:
    """The versions of Kubernetes and of the modules published with it."""
    text = (module / "go.mod").read_text()
    pinned = re.search(r"k8s\.io/kubernetes v\S+", text)
    assert pinned
    return {pinned[0], *re.findall(r"\S+ => (\S+ \S+)", text)}


def test_both_modules_pin_the_same_kubernetes() -> None:
    assert kubernetes(UPSTREAM_MODULE) == kubernetes(GO_MODULE)
    assert len(kubernetes(UPSTREAM_MODULE)) > 30
