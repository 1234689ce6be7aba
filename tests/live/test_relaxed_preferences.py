"""What is recorded of preferences that a pod's node does not meet."""

from prometheus_client import CollectorRegistry

from eclectus.live.process_metrics import counter
from eclectus.live.write.preference_notes import MAX_WORDS, RelaxedPreferences
from eclectus.model.commands import Bind

BIND = Bind("u", "d", "p", "n1", "eclectus")


def relaxed(*unmet):
    registry = CollectorRegistry()
    return RelaxedPreferences(lambda uid: unmet, counter("relaxed_preferences", registry)), registry


def count(registry):
    return registry.get_sample_value("eclectus_relaxed_preferences_total", {"profile": "eclectus"})


def test_a_relaxation_is_an_annotation_until_the_bind_is_answered_and_then_counted():
    found, registry = relaxed("disk=ssd (weight 50)", "zone=a (weight 1)")
    found.decided(BIND)
    words = "disk=ssd (weight 50); zone=a (weight 1)"
    assert found.annotations("u") == {"eclectus.dev/relaxed-preferences": words}
    assert found.answered(BIND, is_bound=True) == f". Preferences not met: {words}"
    assert count(registry) == 1
    assert found.annotations("u") == {}


def test_a_bind_that_is_refused_is_not_counted():
    found, registry = relaxed("disk=ssd (weight 50)")
    found.decided(BIND)
    assert found.answered(BIND, is_bound=False) == ""
    assert count(registry) is None
    assert found.annotations("u") == {}


def test_where_all_preferences_are_met_nothing_is_recorded():
    found, registry = relaxed()
    found.decided(BIND)
    assert found.annotations("u") == {}
    assert found.answered(BIND, is_bound=True) == ""
    assert count(registry) is None


def test_very_many_words_are_cut():
    found, _ = relaxed("k" * 2 * MAX_WORDS)
    found.decided(BIND)
    (words,) = found.annotations("u").values()
    assert len(words) == MAX_WORDS
    assert words.endswith("k…")
