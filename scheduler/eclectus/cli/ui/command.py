"""The command `ui`: it serves the page on a port of this machine until Ctrl-C."""

from pathlib import Path

import click

from eclectus.cli.cluster_commands import kubeconfig_options
from eclectus.kubeclient.kubeconfigs import default_namespace, has_credentials


@click.command()
@click.option("-n", "--namespace", help="Namespace shown first. By default that of the kubeconfig's context.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of 127.0.0.1. By default one that is free; name one to reach it by `ssh -L`.",
)
@click.option(
    "--comparison",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Also show a file that `eclectus simulate` has written with --json; without a kubeconfig, it alone.",
)
@kubeconfig_options
def ui(
    *,
    namespace: str | None,
    port: int,
    comparison: Path | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Serve a page that shows the queue, nodes, pools, DAG jobs and a saved comparison, until Ctrl-C.

    Open the URL that is printed: it holds a secret, without which nothing is answered. The page is served on
    127.0.0.1 alone and reads the cluster as you, with the credentials of the kubeconfig; it changes nothing.
    What it shows is as of now, a page of at most 100 lines of each list, read again every five seconds while
    the page can be seen.

    It needs the chart's visibility.enabled, by which the API server passes questions on to the scheduler.

    \b
    Permissions of the caller; what `view` has suffices for pods and jobs of a namespace, and for pools:
      list pods                  the queue; and get pods, to explain one
      list, get nodes            the nodes
      list pools.eclectus.dev    the pools
      list dagjobs.eclectus.dev  the jobs; and list pods, for when their tasks have run
    """
    import asyncio

    from eclectus.cli.ui.server import serve
    from eclectus.kubeclient import credentials

    compared = access = None
    if comparison is not None:
        from eclectus.cli.ui.comparison import read_comparison

        compared = read_comparison(comparison)
    if compared is None or has_credentials(kubeconfig):
        access = credentials.load(kubeconfig, context)
        namespace = default_namespace(kubeconfig, context) if namespace is None else namespace
    try:
        asyncio.run(serve(access, namespace or "", port, compared))
    except KeyboardInterrupt:
        click.echo()
