"""The chart's values under which Eclectus takes kube-scheduler's place."""

from eclectus_e2e.testbed.chart import render
from eclectus_e2e.upstream.command import VALUES
from eclectus_hack.permissions import granted


def test_the_account_may_hold_the_lease_of_the_name_that_upstreams_pods_have():
    leases = {each.name for each in granted(render(VALUES)) if each.resource == "leases"}
    assert "eclectus-serves-default-scheduler" in leases
