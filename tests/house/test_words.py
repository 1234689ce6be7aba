"""Texts of the repository: valid relative links, no paths of a developer's machine, complete `make help`."""

import re
import subprocess

import pytest

from eclectus_e2e.paths import CHECKOUT

LINK = re.compile(
    r"(?<!\!)\[[^\]]*\]\((?!https?://|mailto:|#)([^)\s]+)\)|!\[[^\]]*\]\((?!https?://)([^)\s]+)\)"
)
# In two parts, so that this file does not match.
MACHINE_PATHS = re.compile(
    "|".join(re.escape("/" + rest) for rest in ("root/", "Users/", "work/main", "work/shared"))
)
HOME = re.compile(r"/home/(?!runner\b)[a-z]")


def tracked(*patterns):
    """Files of the checkout that git does not ignore, committed or not."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *patterns]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    return [CHECKOUT / name for name in listed.split("\0") if name and (CHECKOUT / name).is_file()]


@pytest.mark.parametrize("page", tracked("*.md"), ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_relative_links_point_to_files(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    targets = [(one or other).split("#")[0] for one, other in LINK.findall(text)]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", tracked("*.md"), ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_links_to_headings_point_to_headings(page):
    found = re.findall(r"\]\((?!https?://)([^)\s#]*)#([^)\s]+)\)", page.read_text())
    targets = [((page.parent / name).resolve() if name else page, anchor) for name, anchor in found]
    assert [f"{to.name}#{at}" for to, at in targets if to.suffix == ".md" and at not in anchors(to)] == []


def test_every_runbook_is_a_heading():
    alerts = (CHECKOUT / "charts" / "eclectus" / "files" / "alerts.yaml").read_text()
    runbooks = re.findall(r"runbook_url: docs/troubleshoot.md#(\S+)", alerts)
    assert len(runbooks) == alerts.count("- alert:")
    assert set(runbooks) <= anchors(CHECKOUT / "docs" / "troubleshoot.md")


def test_no_file_contains_a_path_of_a_developers_machine():
    found = []
    for path in tracked():
        text = path.read_bytes().decode(errors="replace")
        found += [
            f"{path.relative_to(CHECKOUT)}: {hit}"
            for hit in {*MACHINE_PATHS.findall(text), *HOME.findall(text)}
        ]
    assert found == []


def test_make_help_lists_every_target():
    targets = set(re.findall(r"^([a-z0-9-]+):", (CHECKOUT / "Makefile").read_text(), flags=re.MULTILINE))
    printed = subprocess.run(
        ["make", "help"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout
    assert set(re.findall(r"^  make ([a-z0-9-]+) ", printed, flags=re.MULTILINE)) == targets


def test_phony_lists_every_target():
    text = (CHECKOUT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z0-9-]+):", text, flags=re.MULTILINE))
    assert set(re.search(r"^\.PHONY: (.*)$", text, flags=re.MULTILINE)[1].split()) == targets
