"""A release installed on real nodes: they pull its images from the registry that it was pushed to."""

import pytest

from eclectus_e2e.testbed.chart import NAMESPACE
from live_cluster import WAIT_SECONDS
from release_rehearsal import helm, install_words, local_registry, rehearse

pytestmark = [pytest.mark.live, pytest.mark.alone, pytest.mark.slow, pytest.mark.timeout(3600)]
IN = f"--namespace={NAMESPACE}"


def test_nodes_pull_the_images_and_the_chart_passes_its_test(real, kubectl, tmp_path_factory):
    folder = tmp_path_factory.mktemp("registry")
    with local_registry(folder) as registry:
        released = rehearse(registry)
        words = install_words("docs/install.md", registry)
        selector = "--set=scheduler.nodeSelector.pool=system,scheduler.image.pullPolicy=Always"
        helm(*words, selector, home=folder, kubeconfig=real.plane.kubeconfig)
        patience = f"--timeout={WAIT_SECONDS:.0f}s"
        kubectl("rollout", "status", "deployment/eclectus", IN, patience)
        helm("test", "eclectus", IN, home=folder, kubeconfig=real.plane.kubeconfig)
        digests = dict(released.listed("images.txt"))
        pods = kubectl.get("pods", IN, "--selector=app.kubernetes.io/component=scheduler")
        assert len(pods) == 2
        for pod in pods:
            (status,) = pod["status"]["containerStatuses"]
            reference = pod["spec"]["containers"][0]["image"]
            assert status["imageID"] == f"{reference.rpartition(':')[0]}@{digests[reference]}"
        helm("uninstall", "eclectus", IN, home=folder, kubeconfig=real.plane.kubeconfig)
        kubectl("delete", "namespace", NAMESPACE)
