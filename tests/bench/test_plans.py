"""The cost of shares and plans of DAG jobs."""

from eclectus_bench import plans
from eclectus_bench.plans import Course, PlanCost


def test_every_number_of_jobs_is_measured() -> None:
    few, more = plans.measure(Course(jobs=(3, 9), planned=2))
    assert (few.jobs, more.jobs) == (3, 9)
    assert 0 < few.plan_ms <= few.plan_most_ms
    assert min(few.shares_ms, few.tree_ms, few.dagps_ms) > 0


def test_the_target_is_judged_by_the_median() -> None:
    fast, slow = (PlanCost(1, 1.0, 1.0, each, 9.0, 1.0) for each in (0.9, 1.1))
    assert plans.line(fast).endswith("met")
    assert plans.line(slow).endswith("MISSED")
