"""Labels of machines from the labels of others."""

import pytest

from eclectus.model.errors import SettingsError
from eclectus_operator.node_labels import changes, parse

NFD = "feature.node.kubernetes.io"
KERNEL = f"eclectus.dev/kernel={{{NFD}/kernel-version.major}}.{{{NFD}/kernel-version.minor}}"
MACHINE = {
    f"{NFD}/kernel-version.major": "6",
    f"{NFD}/kernel-version.minor": "12",
    "nvidia.com/gpu.product": "A10",
}


def test_a_label_comes_from_another_or_from_a_text_with_several():
    mapping = parse(f"eclectus.dev/gpu-model=nvidia.com/gpu.product,{KERNEL}")
    assert changes(mapping, MACHINE) == {"eclectus.dev/gpu-model": "A10", "eclectus.dev/kernel": "6.12"}


def test_only_labels_that_differ_are_changed():
    mapping = parse(f"eclectus.dev/gpu-model=nvidia.com/gpu.product,{KERNEL}")
    labels = {**MACHINE, "eclectus.dev/kernel": "6.1", "eclectus.dev/gpu-model": "A10"}
    assert changes(mapping, labels) == {"eclectus.dev/kernel": "6.12"}


@pytest.mark.parametrize(
    "labels", [{}, {f"{NFD}/kernel-version.major": "6"}, {**MACHINE, f"{NFD}/kernel-version.minor": ""}]
)
def test_without_a_source_or_a_valid_value_a_label_stays_as_it_is(labels):
    assert changes(parse(KERNEL), {**labels, "eclectus.dev/kernel": "5.15"}) == {}


def test_without_a_mapping_nothing_changes():
    assert changes(parse(""), MACHINE) == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("eclectus.dev/kernal=a/b", "did you mean 'eclectus.dev/kernel'?"),
        ("team=a/b", "is not a label of machines; known are: eclectus.dev/kernel, "),
        ("eclectus.dev/kernel=a/b,eclectus.dev/kernel=c", "is named twice"),
        ("eclectus.dev/kernel", "its source '' is not the name of a label"),
        ("eclectus.dev/kernel=a b", "its source 'a b' is not the name of a label"),
        ("eclectus.dev/kernel={a", "is neither a label nor a text with labels in braces"),
        ("eclectus.dev/kernel={a}:{b}", "is neither a label nor a text with labels in braces"),
        ("eclectus.dev/cores=eclectus.dev/disks", "name the label that it comes from"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_label_and_the_reason(text, problem):
    with pytest.raises(SettingsError, match="node-labels ") as caught:
        parse(text)
    assert problem in str(caught.value)


def test_all_wrong_entries_are_named_at_once():
    with pytest.raises(SettingsError) as caught:
        parse("a=b,eclectus.dev/kernel={,eclectus.dev/cores=c/d")
    assert [path for path, _ in caught.value.problems] == ["node-labels a", "node-labels eclectus.dev/kernel"]
