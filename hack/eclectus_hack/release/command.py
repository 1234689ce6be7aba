"""The command `release`: makes and pushes all parts of a version, and says what it did."""

import argparse
import shutil

from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHECKOUT
from eclectus_hack.release import changelog, distributions
from eclectus_hack.release.parts import Plan, make_all
from eclectus_hack.release.report import Report

FOLDER = CHECKOUT / "build" / "release"
SIGNATURES = "signatures: the workflow `release` signs with its own identity, by cosign; no key is kept"


def release(arguments: list[str]) -> int:
    """Make a release in build/release, and push images and chart to a registry if one is given.

    Without --tag it is a rehearsal: what this machine cannot make is named, and the rest is made.
    """
    parser = argparse.ArgumentParser("eclectus_hack release", description=release.__doc__)
    parser.add_argument("--registry", default="", metavar="HOST/PATH", help="push images and chart there")
    parser.add_argument("--downloads", default="", metavar="URL", help="where the files will be served")
    parser.add_argument("--tag", default="", help="the version's tag; then every part must be made")
    options = parser.parse_args(arguments)
    version = changelog.project_version()
    notes = changelog.notes(changelog.CHANGELOG.read_text(), version)
    if options.tag:
        check_tag(options.tag, version, notes)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    plan = Plan(
        version,
        notes,
        options.registry.rstrip("/"),
        options.downloads.rstrip("/"),
        FOLDER,
        distributions.source_time(),
    )
    report = Report()
    make_all(plan, report)
    print(summary(plan, report))
    return int(bool(report.failed or (options.tag and report.lacking)))


def check_tag(tag: str, version: str, notes: changelog.Notes) -> None:
    """Raise UsageError unless a tag is that of the version, and the CHANGELOG has a section for it."""
    if tag != f"v{version}":
        raise UsageError(f"the tag {tag} is not that of the version in pyproject.toml, v{version}")
    if not notes.is_final:
        raise UsageError(f"CHANGELOG.md has no section [{version}]: name and date it before the tag")


def summary(plan: Plan, report: Report) -> str:
    """What was made and what was not, for whoever called the command."""
    made = [f"{each.name}{'/' if each.is_dir() else ''}" for each in sorted(plan.folder.iterdir())]
    lacking = [*report.lines(), SIGNATURES]
    if not plan.notes.is_final:
        lacking.append(
            f"final notes: CHANGELOG.md has no section [{plan.version}]; these are of [Unreleased]"
        )
    lines = [f"Eclectus {plan.version}, made in {plan.folder}:", *(f"  {each}" for each in made)]
    return "\n".join([*lines, "not made:", *(f"  {each}" for each in lacking)])
