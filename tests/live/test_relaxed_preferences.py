"""What is recorded of preferences that a pod's node does not meet."""

import asyncio

import pytest

from eclectus.live.inbox import Inbox
from eclectus.live.process_metrics import Figure, Measured
from eclectus.live.watch.watched_kinds import ConditionState
from eclectus.live.write.outbox import MAX_WORDS, RelaxedPreferences
from eclectus.model.commands import Bind
from outboxes import outbox_of

BIND = Bind("u", "d", "p", "n1", "eclectus")


def relaxed(*unmet):
    counter = Measured("relaxed_preferences", Figure)
    return RelaxedPreferences(lambda uid: unmet, counter), counter


def count(counter):
    return {profile: each.value for (profile,), each in counter.series.items()}.get("eclectus")


def test_a_relaxation_is_an_annotation_until_the_bind_is_answered_and_then_counted():
    found, counter = relaxed("disk=ssd (weight 50)", "zone=a (weight 1)")
    found.decided(BIND)
    words = "disk=ssd (weight 50); zone=a (weight 1)"
    assert found.annotations("u") == {"eclectus.dev/relaxed-preferences": words}
    assert found.answered(BIND, is_bound=True) == f". Preferences not met: {words}"
    assert count(counter) == 1
    assert found.annotations("u") == {}


def test_a_bind_that_is_refused_is_not_counted():
    found, counter = relaxed("disk=ssd (weight 50)")
    found.decided(BIND)
    assert found.answered(BIND, is_bound=False) == ""
    assert count(counter) is None
    assert found.annotations("u") == {}


def test_where_all_preferences_are_met_nothing_is_recorded():
    found, counter = relaxed()
    found.decided(BIND)
    assert found.annotations("u") == {}
    assert found.answered(BIND, is_bound=True) == ""
    assert count(counter) is None


def test_very_many_words_are_cut():
    found, _ = relaxed("k" * 2 * MAX_WORDS)
    found.decided(BIND)
    (words,) = found.annotations("u").values()
    assert len(words) == MAX_WORDS
    assert words.endswith("k…")


@pytest.mark.parametrize("prefers_nodes", [True, False])
def test_only_the_node_of_a_pod_with_preferences_is_examined(server, prefers_nodes):
    asked = []
    states = {"u": ConditionState("7", 1, is_false=False, prefers_nodes=prefers_nodes)}

    async def main():
        async with server.context(1.0) as context:
            outbox_of(context, Inbox(), states=states, unmet=lambda uid: asked.append(uid) or ()).accept(
                [BIND]
            )

    asyncio.run(main())
    assert asked == (["u"] if prefers_nodes else [])
