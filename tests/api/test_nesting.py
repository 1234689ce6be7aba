"""JSON nested deeper than decoders follow: what is too deep becomes null, and the rest is as it was."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.api.common import LEVELS_MOST, SERVER_LEVELS_MOST, read_json, shallow

TEXTS = st.text(max_size=8) | st.sampled_from(['"', "\\", '{"[', "}]", 'a"}', "\\\\"])
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=20,
)


def cut(value: Any, levels: int) -> Any:
    """The value with None for all objects and arrays below so many levels."""
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return None
    if isinstance(value, dict):
        return {key: cut(each, levels - 1) for key, each in value.items()}
    return [cut(each, levels - 1) for each in value]


@given(VALUES, st.integers(1, 5))
def test_it_is_the_value_without_what_is_too_deep(value: Any, levels: int) -> None:
    assert json.loads(shallow(json.dumps(value).encode(), levels)) == cut(value, levels)


def nested(levels: int, opening: str = '{"a":', closing: str = "}") -> bytes:
    return (opening * levels + "1" + closing * levels).encode()


@pytest.mark.parametrize("levels", [LEVELS_MOST, SERVER_LEVELS_MOST, 10 * SERVER_LEVELS_MOST])
@pytest.mark.parametrize("brackets", [('{"a":', "}"), ("[", "]")])
def test_any_depth_is_read(levels: int, brackets: tuple[str, str]) -> None:
    raw = b'{"name":"x","deep":%s,"after":[{"b":"}"}]}' % nested(levels, *brackets)
    found = read_json(msgspec.json.decode, raw)
    assert (found["name"], found["after"]) == ("x", [{"b": "}"}])


@pytest.mark.parametrize("raw", [b'{"a":' * 5000, b'{"a', b"]" * 5000, b""])
def test_what_is_no_json_stays_an_error(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_json(msgspec.json.decode, raw)
