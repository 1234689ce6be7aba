"""What a process says of itself, and the verbosity of its log, which can be changed while it runs."""

import asyncio
import json
import logging

import aiohttp
import pytest

from eclectus import __version__
from eclectus.kubeclient.addresses import bound_address, listen
from eclectus.kubeclient.serving import health
from eclectus.kubeclient.serving.access import AccessControl
from eclectus.live import logs, zpages
from reviewing_api import ReviewingApi

PATH = "/debug/flags/v"


@pytest.fixture(autouse=True)
def verbosity():
    """It is that of the process, so tests put it back."""
    logger = logging.getLogger("eclectus")
    before = logger.level
    logs.set_verbosity(1)
    yield
    logger.setLevel(before)


def access(**rights):
    return AccessControl(ReviewingApi({f"{user}-token": user for user in rights}, rights))


def put(text, control, user="admin-token"):
    """Status and text of the answer to a PUT with the token `user`."""

    async def ask():
        app = health.application({}, {}, bytes, access=control, puts=zpages.PUTS)
        listening = listen("127.0.0.1", 0)
        url = f"http://{bound_address(listening)}{PATH}"
        async with health.serving(app, listening), aiohttp.ClientSession() as session:
            headers = {"Authorization": f"Bearer {user}"} if user else {}
            async with session.put(url, data=text, headers=headers) as answer:
                return answer.status, await answer.text()

    return asyncio.run(ask())


def test_the_verbosity_is_set_until_the_process_ends_and_the_log_says_so(caplog):
    assert put("2\n", access(admin=[f"put {PATH}"])) == (200, "the verbosity is 2, it was 1\n")
    assert logs.verbosity() == 2
    assert logging.getLogger("eclectus.engine").isEnabledFor(logging.DEBUG)
    assert "the verbosity of the log is 2, it was 1" in caplog.text


@pytest.mark.parametrize("text", ["", "3", "-1", "high", "02", "1" * 200, "\udcff".encode(errors="replace")])
def test_no_other_verbosity_is_taken(text):
    status, answer = put(text, access(admin=[f"put {PATH}"]))
    assert status == 400
    assert json.loads(answer)["message"].startswith("the verbosity must be a whole number from 0 to 2")
    assert logs.verbosity() == 1


@pytest.mark.parametrize(("token", "status"), [("", 401), ("made-up", 401), ("reader-token", 403)])
def test_who_may_only_get_the_path_may_not_change_it(token, status):
    control = access(admin=[f"put {PATH}"], reader=[PATH])
    found, answer = put("2", control, token)
    assert found == status
    assert status == 401 or f'User "reader" cannot put path "{PATH}"' in json.loads(answer)["message"]
    assert logs.verbosity() == 1


def test_where_nobody_is_authenticated_nobody_may_change_it():
    assert put("2", None)[0] == 403
    assert logs.verbosity() == 1


def test_flags_are_those_given_and_the_verbosity_of_now():
    given = {"config": "c.yaml", "log_format": "text", "record": None, "verbosity": 0}
    found = json.loads(zpages.flags(given))
    assert found["flags"] == {"config": "c.yaml", "log-format": "text", "verbosity": "1"}


@pytest.mark.parametrize("standby", ["", "a leads"])
def test_the_status_says_since_when_it_runs_and_whether_it_leads(standby):
    (body,) = zpages.status(60.0, lambda: 90.5, lambda: standby)({})
    found = json.loads(body)
    assert (found["startTime"], found["uptimeSeconds"]) == ("1970-01-01T00:01:00+00:00", 30)
    assert (found["leads"], found.get("standby", "")) == (not standby, standby)
    assert found["binaryVersion"] == __version__
