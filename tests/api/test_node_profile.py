"""What is learned of a node is written into an object and read back the same."""

from datetime import UTC, datetime

import msgspec
import pytest
from msgspec.structs import replace

from eclectus.api.node_profile import MAX_CLASSES, decode_page, differs, known_from, new_object, status_of
from eclectus.model.errors import MalformedError
from eclectus.model.learned import LearnedNode, LearnedWork

AT = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
WORK = (LearnedWork("web", 0.25, 40, 0.9), LearnedWork("render", 0.125, 8, 0.5))
KNOWN = LearnedNode("n1", 48, AT, "live", 1.5, 0.9, WORK)


def read(status: object, name: str = "n1") -> LearnedNode | None:
    page = decode_page(msgspec.json.encode({"items": [{"metadata": {"name": name}, "status": status}]}))
    return known_from(page.items[0])


def test_what_is_written_is_read_back() -> None:
    assert read(status_of(KNOWN)) == KNOWN


def test_a_price_is_written_where_there_is_one() -> None:
    assert read(status_of(replace(KNOWN, price=1.25))) == replace(KNOWN, price=1.25)
    assert "price" not in status_of(KNOWN)


def test_so_is_that_of_a_class_of_work() -> None:
    dear = replace(KNOWN, work=(replace(WORK[0], price=2.5), WORK[1]))
    assert read(status_of(dear)) == dear
    assert ["price" in each for each in status_of(dear)["classes"]] == [True, False]


def test_numbers_are_rounded_to_four_digits() -> None:
    status = status_of(replace(KNOWN, speed=1.23456789, work=(LearnedWork("web", 0.000123456, 3, 1 / 3),)))
    assert (status["speed"], status["classes"][0]["rate"]) == (1.235, 0.0001235)
    assert status["classes"][0]["confidence"] == 0.3333


def test_the_classes_with_most_samples_are_kept() -> None:
    many = tuple(LearnedWork(f"w{at:03}", 1.0, at, 0.5) for at in range(100))
    names = [each["name"] for each in status_of(replace(KNOWN, work=many))["classes"]]
    assert names == [f"w{at:03}" for at in range(99, 99 - MAX_CLASSES, -1)]


def test_an_object_without_a_written_status_gives_nothing() -> None:
    assert read({}) is None
    assert read({"lastProbe": {"probe": "p"}}) is None


@pytest.mark.parametrize("bad", [{"classes": [{"name": "a"}]}, {"epoch": "soon"}, {"speed": "fast"}])
def test_a_malformed_object_is_named(bad: object) -> None:
    with pytest.raises(MalformedError, match="NodeProfile"):
        read({**status_of(KNOWN), **bad})  # type: ignore[dict-item]


def test_an_unknown_state_is_named() -> None:
    with pytest.raises(MalformedError, match="n1"):
        read({**status_of(KNOWN), "state": "Tired"})


def test_the_ready_condition_has_the_number_of_samples() -> None:
    (ready,) = status_of(KNOWN)["conditions"]
    assert (ready["status"], ready["message"]) == ("True", "based on 48 samples")
    (ready,) = status_of(replace(KNOWN, state="unknown", work=()))["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "NoSamples")


def test_the_object_is_owned_by_its_node() -> None:
    assert new_object("n1", "uid-1")["metadata"]["ownerReferences"][0]["uid"] == "uid-1"


def work(**fields: object) -> LearnedNode:
    return replace(KNOWN, work=(replace(WORK[0], **fields), WORK[1]))


@pytest.mark.parametrize(
    ("now", "notable"),
    [
        (KNOWN, False),
        (replace(KNOWN, epoch=99, at=AT + 600), False),
        (work(rate=0.26), False),
        (work(rate=0.30), True),
        (work(samples=50), False),
        (work(samples=80), True),
        (replace(KNOWN, state="dead"), True),
        (replace(KNOWN, confidence=0.75), True),
        (replace(KNOWN, speed=2.0), True),
        (replace(KNOWN, price=0.2), False),
        (replace(KNOWN, price=0.35), True),
        (work(price=1.9), False),
        (work(price=2.1), True),
        (replace(KNOWN, work=(*WORK, LearnedWork("new", 1.0, 1, 0.1))), True),
    ],
)
def test_only_a_notable_change_is_written(now: LearnedNode, notable: bool) -> None:
    assert differs(KNOWN, now) is notable


def test_a_scheduler_without_prices_does_not_overwrite_those_of_another() -> None:
    assert not differs(replace(KNOWN, price=2.0), KNOWN)
    assert not differs(work(price=3.0), KNOWN)
