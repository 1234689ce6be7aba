"""When Relieve policies are asked: against a plain dict that is read from end to end each time."""

from __future__ import annotations

from math import inf, nan

from hypothesis import given, settings
from hypothesis import strategies as st

from eclectus.engine.agenda import FIRST_RELIEF_SECONDS, RELIEF_SECONDS_MOST, RefusedKey, ReliefSchedule
from eclectus.model.objects import Spec

KEYS: list[RefusedKey] = [("eclectus", (Spec(node_name=str(at)), "")) for at in range(5)]


class PlainSchedule:
    """The same in O(classes)."""

    def __init__(self) -> None:
        self.due: dict[RefusedKey, float] = {}
        self.wait: dict[RefusedKey, float] = {}

    def next_due(self) -> float:
        return min(self.due.values(), default=inf)

    def add(self, key: RefusedKey) -> None:
        self.due[key] = -inf

    def add_waiting(self, key: RefusedKey) -> None:
        if key not in self.wait:
            self.add(key)

    def take_due(self, now: float) -> list[RefusedKey]:
        taken = [key for key, at in self.due.items() if at <= now]
        for key in taken:
            del self.due[key]
        return taken

    def helped(self, key: RefusedKey) -> None:
        self.wait.pop(key, None)

    def ask_again(self, key: RefusedKey, now: float) -> None:
        self.wait[key] = min(2 * self.wait.get(key, FIRST_RELIEF_SECONDS / 2), RELIEF_SECONDS_MOST)
        self.due.setdefault(key, now + self.wait[key])

    def expedite(self, now: float) -> None:
        self.due = {key: min(at, now + FIRST_RELIEF_SECONDS) for key, at in self.due.items()}
        self.wait.clear()

    def discard(self, key: RefusedKey) -> None:
        self.due.pop(key, None)
        self.wait.pop(key, None)


OF_KEY = st.tuples(
    st.sampled_from(["add", "add_waiting", "ask_again", "helped", "discard"]), st.sampled_from(KEYS)
)
CALLS = st.lists(st.one_of(OF_KEY, st.just(("take_due", None)), st.just(("expedite", None))), max_size=40)


@settings(deadline=None)
@given(calls=CALLS, seconds=st.lists(st.sampled_from([0.0, 1.0, 7.0]), min_size=40, max_size=40))
def test_it_answers_as_a_plain_dict_does(
    calls: list[tuple[str, RefusedKey | None]], seconds: list[float]
) -> None:
    heap, plain, now = ReliefSchedule(), PlainSchedule(), 0.0
    for (name, key), passed in zip(calls, seconds, strict=False):
        now += passed
        arguments = [
            *([key] if key else []),
            *([now] if name in ("ask_again", "take_due", "expedite") else []),
        ]
        assert getattr(heap, name)(*arguments) == getattr(plain, name)(*arguments)
        assert heap.next_due() == plain.next_due()


def test_a_class_is_asked_about_when_more_may_be_done_if_that_is_sooner_but_not_at_once() -> None:
    schedule, key = ReliefSchedule[RefusedKey](), KEYS[0]
    for _ in range(5):
        schedule.ask_again(key, 0.0)
        schedule.take_due(1e9)
    for at, due in ((0.1, FIRST_RELIEF_SECONDS), (2.5, 2.5), (1e6, RELIEF_SECONDS_MOST), (nan, 30.0)):
        schedule.ask_again(key, 0.0, at)
        assert schedule.due_at(key) == due
        schedule.take_due(1e9)


def test_classes_are_due_at_once_no_more_often_than_once_a_second() -> None:
    schedule = ReliefSchedule()
    for now, due in ((10.0, 10.0), (10.4, 11.0), (13.0, 13.0)):
        schedule.ask_again(KEYS[0], now)
        schedule.expedite(now, at_once=True)
        assert schedule.next_due() == due
        schedule.take_due(due)
