"""The event loop of the simulated cluster."""

import asyncio

from eclectus_e2e.chaos.virtual_time import VirtualLoop

TASKS = 50


async def order_of_cancellation():
    """The numbers of the tasks of a group, in the order in which an error ends them."""
    ended = []

    async def one(number):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(number)

    async def fails():
        raise ValueError

    try:
        async with asyncio.TaskGroup() as group:
            kept.append([group.create_task(one(number)) for number in range(TASKS)])
            await asyncio.sleep(1)
            group.create_task(fails())
    except ExceptionGroup:
        pass
    return ended


kept = []  # so that the tasks of the next run have other addresses


def test_what_a_task_group_cancels_ends_in_the_same_order_in_each_run():
    first, *others = [VirtualLoop().run_until_complete(order_of_cancellation()) for _ in range(4)]
    assert sorted(first) == list(range(TASKS))
    assert others == [first] * 3
