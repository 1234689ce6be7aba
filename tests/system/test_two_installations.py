"""Two releases with default values, of which both serve the schedulerName `eclectus`."""

import pytest

from eclectus_e2e.testbed.chart import configuration, render
from live_cluster import pod, wait

pytestmark = [pytest.mark.live, pytest.mark.slow]

PODS = 300  # three times as much as the nodes have room for
SIZES = ("1", "1500m", "700m")


@pytest.fixture
def releases(scheduler):
    """The first leads. Their Leases are those of the chart's releases `eclectus` in two namespaces."""
    made = []
    for namespace in ("one", "two"):
        assert f"resourceNamespace: {namespace}" in configuration(render(namespace=namespace))
        made.append(scheduler(name=namespace, lease={"resourceName": f"eclectus-{namespace}"}))
        if namespace == "one":
            made[0].wait_deciding()
    return made


def test_no_node_is_over_committed_and_the_second_says_what_to_change(admin, releases):
    first, second = releases
    wait("the second says why it does nothing", lambda: second.lines("schedulerName eclectus is taken"))
    admin.create(pod(f"p{at}", cpu=SIZES[at % 3], work=36_000) for at in range(PODS))
    wait("the nodes are full", lambda: first.lines("bound") and not _is_binding(admin))
    assert admin.phases().keys() <= {"Pending", "Running"}, "a kubelet refuses what its node has no room for"
    assert not second.lines("bound")
    assert second.code is None
    (line,) = second.lines("schedulerName eclectus is taken")
    assert "kube-system/eclectus-one (Lease kube-system/eclectus-serves-eclectus)" in line["msg"]
    assert "profiles[].schedulerName" in line["msg"]
    first.kill()
    second.wait_deciding()


def _is_binding(admin) -> bool:
    """Whether a pod may still be placed: each that is not bound has to be reported as unschedulable."""
    waiting = [each for each in admin.pods().values() if not each["spec"].get("nodeName")]
    return not waiting or any("Insufficient cpu" not in str(each["status"]) for each in waiting)
