"""Lists are read whole, in pages of few bytes however large their objects are."""

import asyncio
import tracemalloc
from contextlib import suppress

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from eclectus.kubeclient.api_errors import TooLargeError
from eclectus.kubeclient.client import (
    MAX_LINE_BYTES,
    PAGE_BYTES,
    PAGE_ITEMS,
    ObjectApi,
    list_objects,
    list_pages,
)

KIB, MIB = 2**10, 2**20


class Objects:
    """An ObjectApi with objects of these sizes, bytes; keeps how many it was asked for, and what it sent."""

    def __init__(self, sizes):
        self.sizes, self.limits, self.sent = sizes, [], []

    async def send(self, method, path, body=None, query=None, *, metadata_only=False, most_bytes, **_):
        start, limit = int(query.get("continue", 0)), int(query["limit"])
        self.limits.append(limit)
        page = self.sizes[start : start + limit]
        self.sent.append(min(sum(page), most_bytes))
        if sum(page) > most_bytes:
            raise TooLargeError("GET")
        end = start + len(page)
        numbers = [{"number": number} for number in range(start, end)]
        return {"items": numbers, "metadata": {"continue": str(end)} if end < len(self.sizes) else {}}


def listed(api, query=None):
    return [each["number"] for each in asyncio.run(list_objects(api, "/pods", query))]


def test_small_objects_come_in_pages_of_500():
    api = Objects([4 * KIB] * 1200)
    assert listed(api) == list(range(1200))
    assert api.limits == [PAGE_ITEMS] * 3


def test_a_smaller_limit_is_obeyed():
    api = Objects([4 * KIB] * 250)
    listed(api, {"limit": "100"})
    assert api.limits == [100, 100, 100]


def test_a_page_that_is_too_large_is_asked_for_again_with_half_as_many():
    api = Objects([16 * KIB] * 400)
    assert listed(api) == list(range(400))
    assert api.limits == [500, 250, 282]


def test_the_largest_objects_come_one_or_two_at_a_time():
    api = Objects([3 * MIB // 2] * 40)
    assert listed(api) == list(range(40))
    assert max(api.limits[9:]) <= 3


def test_a_single_object_may_be_larger_than_a_page():
    assert listed(Objects([PAGE_BYTES + 1, 1, PAGE_BYTES + 1])) == [0, 1, 2]


def test_an_object_that_no_api_server_has_is_an_error():
    with pytest.raises(TooLargeError):
        listed(Objects([1, MAX_LINE_BYTES + 1]))


def test_after_large_objects_pages_grow_again():
    api = Objects([3 * MIB // 2] * 4 + [KIB] * 20_000)
    assert listed(api) == list(range(20_004))
    assert api.limits[-1] == PAGE_ITEMS
    assert len(api.limits) < 100


@given(st.lists(st.sampled_from([1, 10 * KIB, 200 * KIB, 3 * MIB // 2, 9 * MIB]), max_size=700))
def test_every_object_is_read_once_and_little_for_nothing(sizes):
    api = Objects(sizes)
    assert listed(api) == list(range(len(sizes)))
    assert sum(api.sent) <= 2.5 * sum(sizes) + 9 * PAGE_BYTES


# -- from a server -------------------------------------------------------------------------------------


def many_large(count):
    """Answers with pages of `count` objects of 1.5 MiB, of which each exists only while it is sent."""

    async def answer(request):
        start, response = int(request.query.get("continue", 0)), web.StreamResponse()
        end = min(start + int(request.query["limit"]), count)
        await response.prepare(request)
        token = f'"{end}"' if end < count else '""'
        await response.write(f'{{"metadata": {{"continue": {token}}}, "items": ['.encode())
        with suppress(ConnectionError):  # who has read enough closes the connection
            for number in range(start, end):
                text = b'{"text": "' + b"x" * (3 * MIB // 2) + b'"}'
                await response.write(text + (b"," if number < end - 1 else b""))
            await response.write(b"]}")
        return response

    return answer


def test_of_an_answer_that_is_too_large_no_more_than_the_bound_is_read(server):
    server.on("GET /pods", many_large(1000))

    async def work():
        async with server.context(seconds=60.0) as context:
            with pytest.raises(TooLargeError, match="GET /pods: the answer has more than 4194304 bytes"):
                await context.client.send("GET", "/pods", query={"limit": "1000"}, most_bytes=PAGE_BYTES)

    tracemalloc.start()
    try:
        asyncio.run(work())
        assert tracemalloc.get_traced_memory()[1] < 4 * PAGE_BYTES
    finally:
        tracemalloc.stop()


def test_a_list_of_large_objects_takes_the_memory_of_its_pages(server):
    count = 64
    server.on("GET /pods", many_large(count))

    async def work():
        async with server.context(seconds=60.0) as context:
            return [len(page) async for page in list_pages(ObjectApi(context.client), "/pods")]

    tracemalloc.start()
    try:
        assert sum(asyncio.run(work())) == count
        assert tracemalloc.get_traced_memory()[1] < 10 * PAGE_BYTES < count * MIB
    finally:
        tracemalloc.stop()
