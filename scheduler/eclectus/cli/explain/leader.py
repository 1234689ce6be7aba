"""Which scheduler to ask: the leader of the installation that serves a schedulerName.

By the Leases that say so: one in kube-system names the installation, and that of the installation its leader
and the leader's server. Whoever could write these would be sent tokens, so nothing is looked for elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from eclectus.api.leader_server import LeaderServer, leader_server
from eclectus.api.names import CLAIMS_NAMESPACE, SCHEDULER_NAME_CLAIM
from eclectus.kubeclient.election import lease_from

if TYPE_CHECKING:
    from eclectus.kubeclient.client import ObjectApi

OR_SERVER = "or name its server with --server URL"

Object = dict[str, Any]


@dataclass(frozen=True)
class Leader:
    """Who leads, the Lease that says so as `namespace/name`, and its server."""

    lease: str
    identity: str
    server: LeaderServer


async def find_leader(api: ObjectApi, names: Sequence[str]) -> Leader:
    """The leader for the first of these schedulerNames that is served.

    Raises click.ClickException, which says what to do.
    """
    for name in names:
        claim = await _lease(api, CLAIMS_NAMESPACE, f"{SCHEDULER_NAME_CLAIM}{name}")
        if claim is not None and (installation := lease_from(claim).holder):
            namespace, _, of_installation = installation.partition("/")
            lease = await _lease(api, namespace, of_installation)
            if lease is None:
                raise click.ClickException(f"no scheduler leads: there is no Lease {installation}")
            return leader_of(installation, lease)
    tried = " or ".join(names)
    raise click.ClickException(
        f"no Eclectus scheduler serves {tried}: name another schedulerName with --scheduler-name, {OR_SERVER}"
    )


def leader_of(name: str, lease: Object) -> Leader:
    """The leader that a Lease names. Raises click.ClickException if it names none, or not its server."""
    identity = lease_from(lease).holder
    if not identity:
        raise click.ClickException(f"no scheduler leads: nobody holds the Lease {name}")
    server = leader_server(name, lease["metadata"].get("annotations") or {})
    if server is None:
        reason = "it has led for some seconds only, or is of a version that does not explain"
        raise click.ClickException(
            f"the Lease {name} does not say where the server of {identity} is: {reason}"
        )
    return Leader(name, identity, server)


async def _lease(api: ObjectApi, namespace: str, name: str) -> Object | None:
    """A Lease; None if there is none of the name."""
    from eclectus.kubeclient.api_errors import MissingError, RejectedError

    try:
        return await api.send("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
    except MissingError:
        return None
    except RejectedError as error:
        advice = f"you need `get` of the Lease {namespace}/{name}"
        raise click.ClickException(f"{error.message}: {advice}, {OR_SERVER}") from None
