"""Which files of credentials there are, and the namespace that they choose, as kubectl finds both.

Commands ask before they read a cluster, so nothing is imported here that a table does not need.
"""

from __future__ import annotations

import os
from pathlib import Path

IN_CLUSTER = "KUBERNETES_SERVICE_HOST"  # the variable that every pod has
IN_CLUSTER_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def default_namespace(kubeconfig: Path | None, context: str | None) -> str:
    """The namespace of the context, as kubectl chooses it; in a pod, the pod's own."""
    if kubeconfig is None and IN_CLUSTER in os.environ:
        return IN_CLUSTER_NAMESPACE.read_text().strip()
    from eclectus.kubeclient.credentials import yaml_of

    documents = [yaml_of(each) or {} for each in _kubeconfigs(kubeconfig)]
    current = context or next(filter(None, (each.get("current-context") for each in documents)), "")
    contexts = [one for each in documents for one in each.get("contexts") or () if one["name"] == current]
    return str((contexts[0].get("context") or {}).get("namespace") or "default") if contexts else "default"


def has_credentials(kubeconfig: Path | None) -> bool:
    """Whether anything names a cluster: an existing kubeconfig, or the pod this runs in."""
    return bool(_kubeconfigs(kubeconfig)) or IN_CLUSTER in os.environ


def _kubeconfigs(kubeconfig: Path | None) -> list[Path]:
    """The existing files of credentials, as kubectl chooses them."""
    named = str(kubeconfig or os.environ.get("KUBECONFIG") or Path("~/.kube/config").expanduser())
    files = [Path(each) for each in named.split(os.pathsep) if each]
    return [each for each in files if each.is_file()]
