"""The workloads are what their names say, and every pod of them is placed."""

import pytest

from eclectus.model.events import TaskSeen
from eclectus.policies.table import PLACE
from eclectus_bench import decisions


def specs(batches):
    return [[event.task.spec for event in batch if isinstance(event, TaskSeen)] for batch in batches]


def test_the_first_step_has_one_pod_of_each_class_and_no_later_step_a_new_class():
    first, *rest = specs(decisions.steps("mixed", 600))
    assert len(first) == len(set(first)) == decisions.CLASSES
    assert {spec for batch in rest for spec in batch} <= set(first)
    assert sum(map(len, rest)) == 600


def test_single_sees_one_pod_a_step_and_burst_many():
    assert {len(batch) for batch in decisions.steps("single", 30)} == {1}
    assert max(len(batch) for batch in decisions.steps("burst", 3 * decisions.BURST)) == decisions.BURST


@pytest.mark.parametrize("policy", PLACE)
@pytest.mark.parametrize("workload", decisions.WORKLOADS)
def test_every_policy_places_every_pod(policy, workload):
    batches = list(decisions.steps(workload, 60))
    assert decisions.run(decisions.engine_with(policy, 7), batches) == sum(map(len, batches))


def test_a_profile_names_the_functions(tmp_path):
    decisions.profile("rosella", 20, tmp_path / "profile.txt", pods=500)
    assert "framework/view.py" in (tmp_path / "profile.txt").read_text()
