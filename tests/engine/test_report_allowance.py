"""While binds go on and are answered slowly few pods are reported, and of every class one in time."""

from __future__ import annotations

from collections import Counter

import pytest

from builders import make_node, make_task
from eclectus.engine.agenda import ReportSchedule
from eclectus.engine.report_allowance import (
    GRACE_SECONDS,
    GRACE_SECONDS_MOST,
    RATE_MOST,
    RATE_RAISED,
    REPORTS_A_SECOND,
    SAVED_CUT,
    SAVED_MOST,
    SHARE,
    ReportAllowance,
)
from slow_servers import SlowServer
from worlds import numbered

SLOW = 0.3  # seconds until a bind is answered
GRACE = 20 * SLOW


def busy(answer: float = SLOW, pods: int = 5_000, cores: int = 8) -> SlowServer:
    """A full cluster, pods that wait for it, and a node that other pods of them have filled."""
    server = SlowServer(answer, make_node("n", cpu=cores, memory=9999, pods=9999))
    server.add(*numbered(20 * cores, prefix="early"))
    server.run(25 * (1 + answer))
    server.reports.clear()
    server.binds.clear()
    server.add(*numbered(pods))
    return server


@pytest.mark.parametrize("answer", [0.1, SLOW, 1.0])
def test_reports_are_a_small_share_of_the_writes_while_binds_go_on(answer: float) -> None:
    server = busy(answer)
    server.run(60)
    assert len(server.binds) > 60 / (1 + answer)
    assert 0 < len(server.reports) <= SAVED_CUT + 1 + SHARE * len(server.binds) + REPORTS_A_SECOND * 60


@pytest.mark.parametrize("answer", [0.0, 0.04])
def test_where_binds_are_answered_soon_all_are_reported_after_a_second(answer: float) -> None:
    server = busy(answer, pods=400)
    server.run(GRACE_SECONDS + 0.1)
    waiting = 400 - len(server.binds)
    assert len(server.reports) >= waiting
    assert min(at for at, _ in server.reports) == pytest.approx(server.now - 0.1)


def test_a_bind_that_is_not_answered_goes_on_but_for_one_that_waits_for_longer_than_any_grace() -> None:
    reports = ReportSchedule()
    for at in range(1000):
        reports.add(f"t{at}", 0.0, "class")
    reports.allowance.sent("bind", 0.5)
    assert len(reports.take_due(GRACE_SECONDS, 999, 999)) == SAVED_MOST
    assert len(reports.take_due(GRACE_SECONDS + 1.0, 999, 999)) == RATE_MOST
    assert reports.next_due() == pytest.approx(2.1)
    reports.allowance.sent("another", 0.6)
    assert len(reports.take_due(0.6 + GRACE_SECONDS_MOST, 999, 999)) == 1000 - SAVED_MOST - RATE_MOST


def test_a_pod_of_each_class_is_reported_within_the_grace_under_a_full_backlog() -> None:
    server = busy()
    server.run(30)
    since = server.now
    server.add(*(make_task(f"shape{at}", memory=1 + at, created=99) for at in range(15)))
    server.run(GRACE)
    assert {f"shape{at}" for at in range(15)} <= set(server.reported(since))


@pytest.mark.parametrize("answer", [0.01, SLOW])
def test_when_reports_are_limited_no_step_is_due_in_which_none_may_be_made(answer: float) -> None:
    """Several thousand are due at once, while binds go on: the engine once stepped at one time for ever."""
    server = busy(answer, pods=0)
    server.run_seconds = 0.4
    server.add(*numbered(4_000), *numbered(50, prefix="large", memory=1))
    for _ in range(200):
        server.run(0.05)
        due = server.engine.next_step_at()
        assert due is None or due > server.now


def test_the_youngest_speaks_for_its_class_so_that_few_reports_keep_it_known() -> None:
    server = busy(pods=100)
    server.add(*numbered(100, prefix="large", memory=1))
    server.run(GRACE_SECONDS + 0.1)
    assert sorted(server.reported()) == ["large99", "t99"]


def test_a_class_whose_reported_pod_is_bound_gets_another_one() -> None:
    reports = ReportSchedule()
    reports.allowance.sent("bind", 0.0)
    reports.allowance.answered("bind", 8.0, 8.0)
    for at, uid in enumerate("abc"):
        reports.add(uid, 8.0 + at / 10, "class")
    assert reports.next_due() == 9.0
    assert reports.take_due(9.0, 99, 99) == ["c"]
    reports.forget("c")
    assert reports.take_due(9.0, 99, 99) == ["b"]
    reports.forget("b")
    reports.forget("a")
    assert reports.next_due() == float("inf")


def test_pods_that_no_node_can_ever_take_are_reported_at_once_all_the_same() -> None:
    server = busy()
    server.run(10)
    since = server.now
    server.add(*numbered(40, prefix="never", cpu=99))
    assert server.now == since
    assert len(server.reported(since)) == 40


def test_when_no_bind_was_answered_for_as_long_as_the_grace_all_are_reported() -> None:
    server = busy(pods=200)
    server.run(3)
    server.run_seconds = 9999.0  # of the pods that are bound from now on
    server.run(2)
    bound, early = len(server.binds), len(server.reports)
    server.run(GRACE - 1.5)
    assert len(server.reports) < early + 5
    server.run(1)
    assert len(server.binds) == bound
    assert len(server.reports) == 200 - bound


def test_the_grace_grows_with_the_time_of_an_answer_up_to_its_limit() -> None:
    allowance = ReportSchedule().allowance
    graces = []
    for seconds in (0.01, 0.3, 60.0):
        for bind in range(200):
            allowance.sent(str(bind), 0.0)
            allowance.answered(str(bind), seconds, seconds)
        graces.append(allowance.grace)
    assert graces == [GRACE_SECONDS, pytest.approx(6.0, rel=0.01), GRACE_SECONDS_MOST]


def answers(allowance: ReportAllowance, seconds: float, begin: float, end: float) -> None:
    """Ten binds a second, each answered after so long."""
    for at in range(int(begin * 10), int(end * 10)):
        allowance.sent(str(at), at / 10 - seconds)
        allowance.answered(str(at), at / 10, at / 10)


def test_the_rate_is_halved_each_second_of_slow_answers_and_rises_slowly_afterwards() -> None:
    allowance = ReportAllowance()
    answers(allowance, SLOW, 0.0, 3.95)
    assert not allowance.is_free
    assert allowance.due(0.0) == pytest.approx(GRACE, rel=0.3)
    answers(allowance, 0.01, 4.0, 7.0)  # until the mean is of fast ones: two seconds and a half
    made = []
    for second in range(7, 40):
        answers(allowance, 0.01, second, second + 1)
        count = allowance.left(second + 1.0)
        for _ in range(count):
            allowance.spend()
        made.append(count)
        if not allowance.is_cut:
            break
    assert made == sorted(made)
    assert made[0] == SAVED_CUT < RATE_MOST / 2 < made[-1]
    assert 15 <= len(made) <= RATE_MOST / RATE_RAISED


def test_reports_find_the_rate_that_the_api_server_bears_beside_binds() -> None:
    """Each report of the last second makes each answer 2 ms longer: 20 a second make them slow."""
    server = busy(0.01, pods=0)
    server.run_seconds = 0.4
    server.add(*numbered(9_000))
    made: list[int] = []
    for _ in range(4 * 90):
        server.run(0.25)
        made.append(len(server.reports))
        server.answer = 0.01 + 0.002 * (made[-1] - made[max(len(made) - 5, 0)])
    a_second = [after - before for before, after in zip(made[40::4], made[44::4], strict=False)]
    assert max(a_second) < 3 * 20  # after the first ten, in which nothing was known
    assert 15 <= sum(a_second) / len(a_second) <= 25


def test_an_answer_that_waits_only_for_the_next_step_is_not_slow() -> None:
    allowance = ReportSchedule().allowance
    for step in range(0, 200, 10):
        allowance.sent("bind", float(step))
        allowance.answered("bind", float(step), step + 10.0)
    assert allowance.grace == GRACE_SECONDS


@pytest.mark.parametrize("answer", [0.0, 0.1, 1.0])
def test_no_pod_costs_more_reports_than_attempts_that_fail_with_kube_scheduler(answer: float) -> None:
    """It tries each pod when it comes, and while pods end after each back-off; each failure is an event."""
    server = busy(answer, pods=300)
    created = server.now
    server.run(60)
    bound = {bind.name: at for at, bind in server.binds}
    for name, count in Counter(server.reported()).items():
        waited = bound.get(name, server.now) - created
        assert count <= sum(waited > failure for failure in (0, 1, 3, 7, 15, 25, 35, 45, 55))
    assert len(server.reports) <= 300
