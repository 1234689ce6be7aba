"""The command `test`: the tests in stages, each with as many processes as it bears.

    pure                nothing but Python: one process a core
    control plane       a real API server and etcd a process: two processes, because most of a test is waiting
    alone               measures speeds or times: one process, nothing beside it
    slow                long simulations and oracles
    long control plane  on a real API server too, more than half a minute each
    long live           alone too, and minutes each: changed speeds on real nodes, many pods, a release
    commands            every long command that a page names, with its defaults: hours

Programs that the tests need are compiled before the stages, because a test's timeout must not include that.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed import clusters
from eclectus_e2e.testbed.controlplane.build import binaries

LIVE_MARK = "mark.live"  # in the text of a file
NO_TESTS = 5  # pytest's exit code when the selection is empty
# A test file shares its fixtures, among them a control plane, so it stays in one process.
BY_FILE = ("--numprocesses=2", "--dist=loadfile", "--durations=10")
BY_TEST = ("--numprocesses=auto", "--dist=worksteal", "--durations=25")


@dataclass(frozen=True)
class Stage:
    """One call of pytest. `minutes`: how long it takes on two idle cores, once everything is compiled."""

    name: str
    selection: str
    options: tuple[str, ...]
    minutes: float
    is_live: bool = False


FAST = Stage("pure", "not live and not slow and not long", BY_TEST, 9)
PURE = Stage("pure", "not live and not slow", BY_TEST, 22)
CONTROL_PLANE = Stage("control plane", "live and not alone and not slow", BY_FILE, 16, is_live=True)
ALONE = Stage("alone", "live and alone and not slow", ("--durations=10",), 8, is_live=True)
SLOW = Stage("slow", "slow and not live and not alone", BY_TEST, 55)
LONG_CONTROL_PLANE = Stage("long control plane", "live and slow and not alone", BY_FILE, 10, is_live=True)
LONG_LIVE = Stage("long live", "live and alone and slow", (), 30, is_live=True)
COMMANDS = Stage("commands of pages", "slow and alone and not live", (), 780)

COURSES = {
    "fast": (FAST,),
    "live": (CONTROL_PLANE, ALONE),
    "all": (PURE, CONTROL_PLANE, ALONE),
    "slow": (SLOW, LONG_CONTROL_PLANE, LONG_LIVE, COMMANDS),
}


def test(arguments: list[str]) -> int:
    """Run the tests of a course in stages; further arguments go to pytest, in every stage."""
    parser = argparse.ArgumentParser("eclectus_hack test", description=test.__doc__)
    parser.add_argument("course", choices=COURSES, help="which stages")
    options, passed_on = parser.parse_known_args(arguments)
    stages = COURSES[options.course]
    about = " + ".join(f"{stage.minutes:g} ({stage.name})" for stage in stages)
    print(f"about {about} minutes on two idle cores", file=sys.stderr)
    if any(stage.is_live for stage in stages) and not clusters.choice():
        binaries()
    results = [(stage, *_run(stage, passed_on)) for stage in stages]
    for stage, code, seconds in results:
        print(f"{stage.name}: {_verdict(code)} after {seconds / 60:.1f} min", file=sys.stderr)
    return exit_code([code for _, code, _ in results])


def exit_code(codes: list[int]) -> int:
    """The first failure; a stage without tests is none, unless no stage has any."""
    failures = [code for code in codes if code not in (0, NO_TESTS)]
    return next(chain(failures, [0] if 0 in codes else [NO_TESTS]))


def command(stage: Stage, passed_on: list[str]) -> list[str]:
    """How pytest is called. An existing or kind cluster is one for all tests, so there they run in turn."""
    parallel = () if stage.is_live and clusters.choice() else stage.options
    # pytest reads all files to find tests by their marks: half a minute for each process.
    files = live_files() if stage.is_live and not any(map(_is_a_place, passed_on)) else ()
    return [sys.executable, "-m", "pytest", "-m", stage.selection, *parallel, *files, *passed_on]


def live_files() -> list[str]:
    """The files that have tests marked as live, below the checkout."""
    files = (CHECKOUT / "tests").rglob("test_*.py")
    return sorted(str(each.relative_to(CHECKOUT)) for each in files if LIVE_MARK in each.read_text("utf-8"))


def _is_a_place(argument: str) -> bool:
    """Whether an argument of pytest names files or tests to collect."""
    return not argument.startswith("-") and (CHECKOUT / argument.partition("::")[0]).exists()


def environment_of(given: Mapping[str, str]) -> dict[str, str]:
    """The environment of tests and of the processes that they start."""
    # One thread a process: arrays here are small, and numpy's threads would wait for each other's cores.
    found = {**given, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    # Container images often set it. Then each of a thousand processes compiles all that it imports, half the
    # time of a scheduler's start, and pytest rewrites all tests in each: a collection of 200 s, not 30.
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def _run(stage: Stage, passed_on: list[str]) -> tuple[int, float]:
    """Exit code and duration in seconds."""
    print(f"\n== {stage.name}: about {stage.minutes:g} minutes", file=sys.stderr)
    started = time.monotonic()
    environment = environment_of(os.environ)
    code = subprocess.run(command(stage, passed_on), cwd=CHECKOUT, env=environment, check=False).returncode
    return code, time.monotonic() - started


def _verdict(code: int) -> str:
    return {0: "passed", NO_TESTS: "no test selected"}.get(code, f"FAILED (exit code {code})")
