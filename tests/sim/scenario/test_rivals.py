"""Shipped scenarios have rivals as they are: papers without a limit of waits, equal scores at random."""

import pytest
import yaml

from eclectus_e2e.paths import CHECKOUT

OF_PAPERS = {"clwl", "dlwl", "eagle", "hawk", "jiq", "pot", "pss", "sparrow"}
OF_KUBE_SCHEDULER = {"least-allocated", "balanced-allocation"}
PROFILES = [
    pytest.param(profile, id=f"{path.stem}: {profile['schedulerName']}")
    for path in sorted((CHECKOUT / "scenarios").glob("*.yaml"))
    for profile in yaml.safe_load(path.read_text()).get("profiles", ())
]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_policy_of_a_paper_has_no_limit_of_waits(profile):
    place = profile.get("place", {})
    is_of_paper = place.get("policy") in OF_PAPERS or place.get("mode") == "paper"
    if is_of_paper or place.get("queue") == "lines" or "dispatchers" in profile:
        assert profile.get("waitLimit", "the default") is None


@pytest.mark.parametrize("profile", PROFILES)
def test_of_equal_nodes_kube_schedulers_rule_takes_one_at_random(profile):
    place = profile.get("place", {})
    if place.get("policy") in OF_KUBE_SCHEDULER:
        assert place.get("ties") == "random"
