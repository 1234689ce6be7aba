"""The minor versions of Kubernetes that are tried: the one of all other tests, and the two before it."""

from collections.abc import Mapping

from eclectus_e2e.paths import VERSION_MODULES
from eclectus_e2e.testbed.controlplane.build import (
    CONTROL_PLANE,
    KUBERNETES_VERSION,
    GoPrograms,
    control_plane,
)

# The newest patch of each when its module (e2e/versions/MINOR) was made.
_OLDER = {"1.36": "v1.36.3", "1.35": "v1.35.4"}


def minor_of(version: str) -> str:
    """`1.37` of `v1.37.2`."""
    return version.removeprefix("v").rpartition(".")[0]


VERSIONS: Mapping[str, GoPrograms] = {
    minor_of(KUBERNETES_VERSION): CONTROL_PLANE,
    **{minor: control_plane(VERSION_MODULES / minor, version) for minor, version in _OLDER.items()},
}
"""Minor version -> its control plane, the newest first."""
