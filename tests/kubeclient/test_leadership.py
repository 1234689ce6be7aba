"""Of two installations that serve the same one leads; its next leader has the claims at once."""

import asyncio
import logging
from contextlib import asynccontextmanager
from random import Random

import pytest
from msgspec.structs import replace

from eclectus.kubeclient.api_errors import UnsureError
from eclectus.kubeclient.election import ElectionSettings
from eclectus.kubeclient.leadership import Claim, Leadership
from fake_api import FakeApi, fails_once

TIMES = ElectionSettings("one", "eclectus", lease_duration=2, renew_deadline=1.0, retry_period=0.1)
OTHER = replace(TIMES, namespace="two")
NAMES = ("eclectus",)


@asynccontextmanager
async def installed(api, settings=TIMES, names=NAMES, identity="replica"):
    """A replica of an installation that serves these names."""
    claims = [Claim(f"serves-{name}", f"schedulerName {name}", "Choose another name.") for name in names]
    leadership = Leadership(api, identity, settings, Random(1), claims)
    task = asyncio.create_task(leadership.run())
    try:
        yield leadership
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def soon(event):
    async with asyncio.timeout(5):
        await event.wait()


def lease(api, name, namespace="kube-system"):
    return api.objects[f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"]


def test_the_leader_holds_its_own_lease_and_a_claim_for_each_name():
    api = FakeApi()

    async def work():
        async with installed(api, names=("b", "a")) as one:
            await soon(one.leading)
            assert one.holds_lease()

    asyncio.run(work())
    assert lease(api, "eclectus", "one")["spec"]["holderIdentity"] == "replica"
    assert {lease(api, f"serves-{name}")["spec"]["holderIdentity"] for name in "ab"} == {"one/eclectus"}


@pytest.mark.parametrize("names", [("eclectus",), ("another", "eclectus"), ("eclectus", "further")])
@pytest.mark.long
def test_a_second_installation_leads_nothing_and_says_what_to_change(names, caplog):
    api = FakeApi()

    async def work():
        async with installed(api) as one:
            await soon(one.leading)
            async with installed(api, OTHER, names) as two:
                await soon(two.tried)
                await asyncio.sleep(1.5 * TIMES.lease_duration)  # without renewals the Lease would expire
                assert one.holds_lease()
                assert not two.holds_lease()
                assert not two.leading.is_set()

    with caplog.at_level(logging.ERROR):
        asyncio.run(work())
    (record,) = caplog.records
    assert "schedulerName eclectus is taken by another installation, one/eclectus" in record.message
    assert "Lease kube-system/serves-eclectus" in record.message
    assert record.message.endswith("Choose another name.")


def test_installations_of_different_names_lead_both():
    api = FakeApi()

    async def work():
        async with installed(api) as one, installed(api, OTHER, ("batch",)) as two:
            await soon(one.leading)
            await soon(two.leading)

    asyncio.run(work())


def test_the_next_replica_of_the_installation_has_the_claims_at_once():
    api = FakeApi()

    async def work():
        async with installed(api, identity="old") as old:
            await soon(old.leading)
            await old.resign()
            assert not old.holds_lease()
        assert lease(api, "serves-eclectus")["spec"]["holderIdentity"] == "one/eclectus", "kept for the next"
        async with installed(api, identity="new") as new:
            async with asyncio.timeout(TIMES.lease_duration / 2):
                await new.leading.wait()

    asyncio.run(work())


@pytest.mark.long
def test_a_second_installation_takes_over_when_the_first_is_gone():
    api = FakeApi()

    async def work():
        async with installed(api) as one:
            await soon(one.leading)
        async with installed(api, OTHER) as two:
            await soon(two.leading)
            assert two.holds_lease()

    asyncio.run(work())


def test_a_claim_that_is_lost_ends_leadership():
    api = FakeApi()

    async def work():
        async with installed(api) as one:
            await soon(one.leading)
            taken = lease(api, "serves-eclectus")
            api.touch("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/serves-eclectus")
            taken["spec"]["holderIdentity"] = "two/eclectus"
            await soon(one.lost)
            assert not one.holds_lease()

    asyncio.run(work())


def test_a_replica_that_waits_for_a_claim_and_loses_its_own_lease_ends():
    api = FakeApi()

    async def work():
        async with installed(api) as one:
            await soon(one.leading)
            async with installed(api, OTHER) as two:
                await soon(two.tried)
                path = "/apis/coordination.k8s.io/v1/namespaces/two/leases/eclectus"
                api.touch(path)["spec"]["holderIdentity"] = "another replica"
                await soon(two.lost)
                assert not two.leading.is_set()

    asyncio.run(work())


def test_who_holds_a_claim_is_reported_also_after_a_failed_request(caplog):
    api = FakeApi()

    async def work():
        async with installed(api) as one:
            await soon(one.leading)
            api.before = fails_once("GET", "kube-system/leases", UnsureError("GET"))
            async with installed(api, OTHER) as two:
                await soon(two.tried)
                async with asyncio.timeout(5):
                    while "is taken by another installation" not in caplog.text:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)

    asyncio.run(work())


def test_a_claim_of_its_own_installation_is_not_reported_as_that_of_another(caplog):
    api = FakeApi()

    async def work():
        async with installed(api, identity="first") as one:
            await soon(one.leading)
            await one.resign()
        api.before = fails_once("PUT", "kube-system/leases", UnsureError("PUT"))
        async with installed(api, identity="second") as two:
            await soon(two.tried)
            reason = two.why_standby()
            await soon(two.leading)
            return reason

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(work()) == "this replica does not lead, and no other is known to"
    assert caplog.text == ""


def test_a_standby_names_the_leader():
    api = FakeApi()

    async def work():
        async with installed(api, identity="first") as one, installed(api, identity="second") as two:
            await soon(one.leading)
            await soon(two.tried)
            return one.why_standby(), two.why_standby()

    assert asyncio.run(work()) == ("", "this replica does not lead; first does")


def test_a_replica_whose_name_is_taken_names_the_other_installation():
    api = FakeApi()

    async def work():
        async with installed(api) as one:
            await soon(one.leading)
            async with installed(api, OTHER) as two:
                await soon(two.tried)
                return two.why_standby()

    expected = "schedulerName eclectus is taken by another installation, one/eclectus"
    assert asyncio.run(work()) == expected


def test_a_replica_that_has_not_tried_yet_knows_of_no_leader():
    one = Leadership(FakeApi(), "me", TIMES, Random(1), [])
    assert one.why_standby() == "this replica does not lead, and no other is known to"


def test_without_an_election_nothing_is_claimed():
    api = FakeApi()
    one = Leadership(api, "me", replace(TIMES, enabled=False), Random(1), [Claim("c", "c", "")])
    assert one.leading.is_set()
    assert one.holds_lease()
    assert one.why_standby() == ""
    assert api.calls == []
