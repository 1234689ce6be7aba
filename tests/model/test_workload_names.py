"""Names of workloads: namespace and kind."""

from __future__ import annotations

import pytest

from eclectus.model.objects import EVERYBODY, kind_of, namespace_of, workload_name


@pytest.mark.parametrize("kind", ["train", "busybox", "localhost:5000/team/app", "a,b/c"])
def test_a_name_is_split_where_it_was_joined(kind: str) -> None:
    name = workload_name("shop", kind, frozenset({"other"}))
    assert (namespace_of(name), kind_of(name)) == ("shop", kind)


def test_a_shared_class_has_no_namespace() -> None:
    name = workload_name("shop", "train", frozenset({"train"}))
    assert (name, namespace_of(name), kind_of(name)) == ("train", EVERYBODY, "train")
