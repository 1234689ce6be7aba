"""Where things lie: the checkout, its build folder, and the user's cache outside of it."""

import os
from pathlib import Path

from eclectus_e2e.errors import UsageError

CHECKOUT = Path(__file__).resolve().parents[2]
CLUSTER_DIRECTORY = CHECKOUT / "build" / "cluster"
GO_MODULE = CHECKOUT / "e2e" / "controlplane"
NODE_MODULES = CHECKOUT / "e2e" / "realnodes"
CHART = CHECKOUT / "charts" / "eclectus"
MANIFESTS = CHECKOUT / "manifests"
KIND_CONFIG = CHECKOUT / "e2e" / "kind.yaml"
IMAGES = CHECKOUT / "e2e" / "images.yaml"
PAUSE = CHECKOUT / "e2e" / "pause.go"
# A unix socket's path has to fit 108 bytes (unix(7)); a longer one fails with a bare OSError.
_PATH_BYTES = 107


def cache_directory() -> Path:
    """The user's cache for Eclectus (XDG base directory rules), not yet created."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "eclectus"


def check_socket_path(socket: Path) -> None:
    """Refuse a path too long for a unix socket."""
    if len(str(socket).encode()) > _PATH_BYTES:
        raise UsageError(
            f"{socket}: a unix socket's path may have {_PATH_BYTES} bytes; use a shorter directory"
        )


# Programs of the system are not on every user's PATH, and debootstrap calls some by name.
SYSTEM_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
