"""The command `chaos`."""

import argparse
import json
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict
from itertools import count
from pathlib import Path

from eclectus_e2e.chaos.story import Action, Story, drawn, shrunk
from eclectus_e2e.chaos.world import Outcome, play
from eclectus_e2e.options import check_positive
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

FOLDER = CHECKOUT / "build" / "chaos"
_MINUTES = 30.0
_FOUND_MOST = 5
_AHEAD = 20  # stories of a worker that are begun, or will be next, while the first one is waited for


def chaos(arguments: list[str]) -> int:
    """Run schedulers and operators against a simulated API server, network and clock; check every write.

    Each seed is a story of two minutes of virtual time: tenants submit and delete pods and DagJobs, nodes
    come and go, replicas are killed, paused and cut off, requests are lost or late, etcd is compacted. Then
    all faults end, and everything must settle. A story that breaks a promise is shrunken, printed and
    written to a file for --story. Exit code 0 when no promise was broken.
    """
    options = _parsed(arguments)
    if os.environ.get("PYTHONHASHSEED") != "0":  # or sets would be read in another order each time
        command = [sys.executable, "-m", "eclectus_e2e", "chaos", *arguments]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606 — ourselves
    if options.story is not None:
        return _again(options.story)
    return _run(options)


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("eclectus_e2e chaos", description=chaos.__doc__)
    parser.add_argument(
        "--minutes",
        type=float,
        default=_MINUTES,
        help="how long new stories are begun (default: %(default)g)",
    )
    parser.add_argument("--seeds", type=int, help="so many stories, however long they take")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the first story; the next has the next (default: %(default)s)"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="stories at a time (default: one a core)"
    )
    parser.add_argument("--story", type=Path, metavar="FILE", help="play the story of a file alone")
    parser.add_argument(
        "--stop-after", type=int, default=_FOUND_MOST, help="so many broken promises (default: %(default)s)"
    )
    parser.add_argument("--no-shrink", action="store_true", help="report stories as they are drawn")
    options = parser.parse_args(arguments)
    check_positive(options, "minutes", "seeds", "jobs", "stop_after")
    return options


def _run(options: argparse.Namespace) -> int:
    totals, played, broken = Counter[str](), 0, 0
    ends_at = time.monotonic() + 60 * options.minutes
    with Progress("chaos") as progress, ProcessPoolExecutor(options.jobs) as pool:
        for seed, outcome in _outcomes(pool, options):
            played += 1
            totals += outcome.counts
            if outcome.broken:
                broken += 1
                _report(seed, outcome, is_shrunken=not options.no_shrink)
            progress.update(f"{played} stories, seed {seed}, {broken} promises broken")
            is_over = options.seeds is None and time.monotonic() > ends_at
            if broken >= options.stop_after or is_over:
                pool.shutdown(cancel_futures=True)
                break
    print(", ".join(f"{value:,} {name}" for name, value in [("stories", played), *sorted(totals.items())]))
    print(f"{broken} promises broken" if broken else "no promise was broken")
    return 1 if broken else 0


def _outcomes(pool: ProcessPoolExecutor, options: argparse.Namespace) -> Iterator[tuple[int, Outcome]]:
    """Each seed and how its story has ended, in order; no worker waits for the longest story of another."""
    seeds = (
        count(options.seed) if options.seeds is None else range(options.seed, options.seed + options.seeds)
    )
    begun = deque[tuple[int, Future[Outcome]]]()
    for seed in seeds:
        begun.append((seed, pool.submit(_outcome, seed)))
        if len(begun) > _AHEAD * options.jobs:
            first, outcome = begun.popleft()
            yield first, outcome.result()
    for seed, outcome in begun:
        yield seed, outcome.result()


def _outcome(seed: int) -> Outcome:
    return play(drawn(seed))


def _report(seed: int, outcome: Outcome, *, is_shrunken: bool) -> None:
    story = drawn(seed)
    print(f"\nseed {seed}: {outcome.broken}")
    if is_shrunken:
        story = shrunk(story, lambda smaller: bool(play(smaller).broken))
        print(f"shrunken to {len(story.actions)} actions: {play(story).broken}")
    print("\n".join(f"  {action}" for action in story.actions))
    path = FOLDER / f"seed-{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(story), indent=1))
    print(f"  again: python -m eclectus_e2e chaos --story {os.path.relpath(path)}", flush=True)


def _again(path: Path) -> int:
    found = json.loads(path.read_text())
    outcome = play(Story(found["seed"], tuple(Action(**each) for each in found["actions"])))
    print(outcome.broken or "no promise was broken")
    return 1 if outcome.broken else 0
