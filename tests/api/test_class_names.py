"""A class of work has a name that NodeProbe and NodeProfile can hold."""

import pytest
import yaml

from eclectus.api.common import MAX_NAME, bounded
from eclectus_e2e.paths import CHART


@pytest.mark.parametrize("name", ["", "web", "x" * MAX_NAME, "é" * MAX_NAME])
def test_a_name_that_fits_is_kept(name: str) -> None:
    assert bounded(name) == name


def test_a_longer_name_is_cut_to_what_fits() -> None:
    long = bounded("shop/" + "a" * 10_000)
    assert len(long) == MAX_NAME
    assert long.startswith("shop/aaa")
    assert bounded(long) == long, "what is read back is the same class"


def test_longer_names_with_the_same_beginning_stay_apart() -> None:
    assert bounded("a" * 600 + "b") != bounded("a" * 600 + "c")


@pytest.mark.parametrize(
    ("file", "path"),
    [("nodeprofiles.yaml", ["classes"]), ("nodeprobes.yaml", ["load", "properties", "classes"])],
)
def test_the_definitions_allow_as_much(file: str, path: list[str]) -> None:
    definition = yaml.safe_load((CHART / "files" / "crds" / file).read_text())
    part = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    for key in ["properties", *path]:
        part = part[key]
    assert part["items"]["properties"]["name"]["maxLength"] == MAX_NAME
