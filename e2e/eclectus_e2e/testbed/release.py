"""A release of the chart with its pods, on a cluster whose nodes have its images."""

from pathlib import Path

import helm_python as helm

from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed.chart import NAMESPACE, RELEASE, Values

# Takes 15 s on an idle machine; on a node with half a core the scheduler takes long to start.
WAIT_SECONDS = 300


class Release:
    """`helm install`, `upgrade`, `test` and `uninstall` of one release; each waits until it is complete."""

    def __init__(self, kubeconfig: Path, namespace: str = NAMESPACE) -> None:
        self._kubeconfig, self.namespace = kubeconfig, namespace

    def install(self, values: Values) -> None:
        """Install it into its namespace, which must exist. Raises helm's errors."""
        with self._config() as config, helm.Chart.load(CHART) as chart:
            config.install(
                chart, RELEASE, dict(values), namespace=self.namespace, timeout=WAIT_SECONDS, wait="watcher"
            )

    def upgrade(self, values: Values) -> None:
        """Upgrade it, keeping the values that are not given."""
        with self._config() as config, helm.Chart.load(CHART) as chart:
            config.upgrade(
                chart,
                RELEASE,
                dict(values),
                namespace=self.namespace,
                timeout=WAIT_SECONDS,
                wait="watcher",
                reuse_values=True,
            )

    def test(self) -> None:
        """Run its tests. Raises HelmReleaseError when one fails."""
        with self._config() as config:
            config.test(RELEASE, timeout=WAIT_SECONDS)

    def uninstall(self) -> None:
        """Uninstall it."""
        with self._config() as config:
            config.uninstall(RELEASE, timeout=WAIT_SECONDS, wait="watcher")

    def _config(self) -> helm.Config:
        return helm.Config(kubeconfig_path=self._kubeconfig, namespace=self.namespace)
