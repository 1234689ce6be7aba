"""Pages are made one at a time, once for all who wait, and leave most of the loop to others."""

import asyncio

import pytest

from eclectus.kubeclient.serving.pages import MOST_WAITING, SHARE, BusyError, PageMaker, QueryError


class Machine:
    """Counts the time that parts of pages work, and the time in between."""

    def __init__(self):
        self.worked = self.slept = 0.0

    def parts(self, count):
        """A page of so many parts of two milliseconds each."""

        def parts(_):
            for _ in range(count):
                self.worked += 0.002
                yield b"x"

        return parts

    async def sleep(self, seconds):
        self.slept += seconds


class Counting:
    """A page of three parts that counts how often it is made, and how often at the same time."""

    def __init__(self):
        self.made, self.making, self.most = 0, 0, 0

    def __call__(self, query):
        self.made += 1
        self.making += 1
        self.most = max(self.most, self.making)
        for part in range(3):
            yield f"{query.get('page', '')}{part}".encode()
        self.making -= 1


def asked(maker, queries):
    """The bodies, or the errors, of requests that come at the same time."""

    async def work():
        return await asyncio.gather(*map(maker.body, queries), return_exceptions=True)

    return asyncio.run(work())


def test_equal_requests_at_the_same_time_get_the_same_page():
    page = Counting()
    bodies = asked(PageMaker(page), [{"page": "a"}] * 500)
    assert set(bodies) == {b"a0a1a2"}
    assert page.made == 1


def test_different_pages_are_made_one_after_another():
    page = Counting()
    bodies = asked(PageMaker(page), [{"page": name} for name in "abcd"])
    assert bodies == [f"{name}0{name}1{name}2".encode() for name in "abcd"]
    assert (page.made, page.most) == (4, 1)


def test_a_later_request_gets_a_new_page():
    page = Counting()
    maker = PageMaker(page)
    for count in (1, 2):
        asked(maker, [{}])
        assert page.made == count


def test_more_pages_than_may_wait_are_refused():
    page = Counting()
    bodies = asked(PageMaker(page), [{"page": str(at)} for at in range(1000)])
    assert page.made == MOST_WAITING
    assert sum(isinstance(body, bytes) for body in bodies) == MOST_WAITING
    assert sum(isinstance(body, BusyError) for body in bodies) == 1000 - MOST_WAITING


@pytest.mark.parametrize("parts", [1, 100])
def test_pages_leave_nine_tenths_of_the_time_to_others(parts):
    machine = Machine()
    maker = PageMaker(machine.parts(parts), cpu_time=lambda: machine.worked, sleep=machine.sleep)
    for _ in range(3):
        asked(maker, [{}])
    assert machine.worked == pytest.approx(3 * parts * 0.002)
    assert machine.worked == pytest.approx(SHARE * (machine.worked + machine.slept))


def test_other_tasks_run_between_two_parts():
    seen, ticks = [], 0

    def parts(_):
        for _ in range(20):
            seen.append(ticks)
            yield b"x"

    async def work():
        nonlocal ticks
        page = asyncio.create_task(PageMaker(parts).body({}))
        while not page.done():
            ticks += 1
            await asyncio.sleep(0)

    asyncio.run(work())
    assert len(set(seen)) == 20


def test_an_error_reaches_all_who_wait_and_nobody_else():
    def parts(query):
        if "bad" in query:
            raise QueryError("wrong")
        yield b"x"

    maker = PageMaker(parts)
    errors = asked(maker, [{"bad": "1"}, {"bad": "1"}, {}])
    assert [type(each) for each in errors] == [QueryError, QueryError, bytes]
    with pytest.raises(QueryError, match="wrong"):
        asyncio.run(maker.body({"bad": "1"}))


def test_a_client_that_goes_away_takes_no_page_from_others():
    page = Counting()
    maker = PageMaker(page)

    async def work():
        one, other = (asyncio.create_task(maker.body({})) for _ in range(2))
        await asyncio.sleep(0)
        one.cancel()
        return await other

    assert asyncio.run(work()) == b"012"
