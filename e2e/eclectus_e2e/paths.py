"""Paths of the checkout, of its build folder and of the user's cache."""

import os
from pathlib import Path

from eclectus_e2e.errors import UsageError

CHECKOUT = Path(__file__).resolve().parents[2]
CLUSTER_DIRECTORY = CHECKOUT / "build" / "cluster"
GO_MODULE = CHECKOUT / "e2e" / "controlplane"
VERSION_MODULES = CHECKOUT / "e2e" / "versions"
HELM_MODULE = CHECKOUT / "e2e" / "helm"
CRANE_MODULE = CHECKOUT / "e2e" / "crane"
NODE_MODULES = CHECKOUT / "e2e" / "realnodes"
UPSTREAM_MODULE = CHECKOUT / "e2e" / "upstream"
KUEUE_MODULE = CHECKOUT / "e2e" / "kueue"
ARGO_MODULE = CHECKOUT / "e2e" / "argo"
CHART = CHECKOUT / "charts" / "eclectus"
MANIFESTS = CHECKOUT / "manifests"
KIND_CONFIG = CHECKOUT / "e2e" / "kind.yaml"
IMAGES = CHECKOUT / "e2e" / "images.yaml"
PAUSE = CHECKOUT / "e2e" / "pause.go"
# A unix socket's path has at most 108 bytes with its final zero (unix(7)).
_MAX_SOCKET_PATH_BYTES = 107


def cache_directory() -> Path:
    """The user's cache for Eclectus (XDG Base Directory Specification); may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "eclectus"


def check_socket_path(socket: Path) -> None:
    """Raise UsageError for a path too long for a unix socket; bind() would raise a bare OSError."""
    if len(str(socket).encode()) > _MAX_SOCKET_PATH_BYTES:
        raise UsageError(
            f"{socket}: the path of a unix socket may have {_MAX_SOCKET_PATH_BYTES} bytes;"
            " use a shorter directory"
        )


# System programs are not on every user's PATH, and debootstrap calls some by name.
SYSTEM_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
