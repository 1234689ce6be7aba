"""README's table of what works and what does not is that of the code."""

import re

import pytest

from eclectus.feasibility.rules.table import STATIC_RULES, USAGE_RULES
from eclectus.feasibility.topology.mask import AFFINITY, EXISTING_ANTI, OWN_ANTI, SPREAD
from eclectus.kube.constraints import IGNORED, REFUSED
from eclectus.policies import table
from eclectus_e2e.paths import CHECKOUT

README = (CHECKOUT / "README.md").read_text()
# README names these together.
CLOUD_DISKS = {name for name in REFUSED if name.endswith(" volumes")}


def row(name):
    """The right column of a row of the table."""
    return re.search(rf"^\| \*\*{name}\*\*[^|]*\| (.*) \|$", README, flags=re.MULTILINE)[1]


LISTED = (set(REFUSED) - CLOUD_DISKS) | {"cloud disks in the pod itself"}


@pytest.mark.parametrize(("name", "features"), [("refused", LISTED), ("ignored", set(IGNORED))])
def test_every_unsupported_feature_is_listed_and_no_other(name, features):
    assert set(row(name).split(", ")) == features


@pytest.mark.parametrize(("section", "features"), [("Refused", LISTED), ("Ignored", set(IGNORED))])
def test_the_page_of_differences_lists_the_same(section, features):
    page = (CHECKOUT / "docs" / "differences.md").read_text()
    rows = page.partition(f"## {section}\n")[2].partition("\n## ")[0].split("|---|---|\n")[1].splitlines()
    cells = [each.split(" | ")[0].removeprefix("| ") for each in rows if each.startswith("| ")]
    assert {name for cell in cells for name in cell.split(", ")} == features


def test_every_filter_is_listed_as_working():
    # The refusals above; shared GPUs are a part of NodeResourcesFit here; copies are no pods of users.
    ours = {"Unsupported", "Devices", "SlowNodes"}
    rules = (*STATIC_RULES, *USAGE_RULES, SPREAD, AFFINITY, OWN_ANTI, EXISTING_ANTI)
    plugins = {rule.plugin for rule in rules} - ours
    assert set(re.findall(r"`([A-Z]\w+)`", row("filters"))) == plugins | {"NodeResourcesFit"}


def test_the_number_of_policies_is_true():
    count = len(table.PLACE) + len(table.ORDER)
    assert f"{count} placement and ordering policies" in row("beyond")


def test_the_five_rows_of_the_first_screen_quote_the_table_of_all_figures():
    first, _, others = README.partition("\n## ")
    rows = re.findall(r"^\| \*\*(?:won|equal|lost)\*\*.*$", first, flags=re.MULTILINE)
    figures = re.findall(r"\d+\.\d\d (?:±\d+\.\d\d|\(\d+\.\d\d to \d+\.\d\d\))", " ".join(rows))
    assert len(rows) == 5
    assert len(figures) > 9
    assert all(each in others for each in figures)
