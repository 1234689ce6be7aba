"""The command `pressure`."""

import argparse
import os
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count, repeat

from eclectus_e2e.chaos.pressure.climbing import (
    OBJECTIVES,
    PAIRS,
    Found,
    Pair,
    Screened,
    described,
    in_order,
    screen,
    search,
)
from eclectus_e2e.chaos.pressure.kinds import KINDS
from eclectus_e2e.errors import UsageError
from eclectus_e2e.options import check_positive
from eclectus_e2e.progress import Progress

_MINUTES = 60.0
_GENERATIONS = 6
_SECONDS = 20.0  # of CPU that a world may take
_CLIMBING = 0.5  # of the time; the rest is for worlds drawn before, doubled after, and a second seed
_COLUMNS = "{:21} {:9} {:>5} {:>11} {:>6} {:>11} {:>10}  {}"
_HEAD = _COLUMNS.format("pair", "objective", "grows", "calls", "s", "of another", "bytes each", "vector")


def pressure(arguments: list[str]) -> int:
    """Search for objects that cost the scheduler more than their number, over all pairs of kinds.

    Worlds of two kinds of objects, drawn from a seed, are changed in small steps, those of the costliest
    pairs first, and what costs more for each object is kept: calls of functions in the longest step, calls
    until a plain pod of another tenant is bound, and bytes. Then both numbers of objects are doubled twice,
    and once more if it seems too much.
    `grows` is the exponent of the cost at the end: 1 is linear, 2 is a product, and 0 is a cost that is
    bounded, or little; `over` is a step, or a memory, beyond what any may cost. Counts and seconds are those
    of the last world, at most eight times the vector.
    Exit code 0 when nothing is over or grows too fast: work and bytes faster than the objects, or what
    another tenant's pod costs at all.
    """
    options = _parsed(arguments)
    screens, climbs = _searched(options)
    found = _worst(climbs)
    print(_HEAD)
    for each in sorted(found, key=lambda each: (not each.is_finding, each.pair, each.objective)):
        print(line(each))
    bad = sum(each.is_finding for each in found)
    worlds = sum(each.worlds for each in climbs) + sum(len(each.worlds) for each in screens)
    seconds = _cpu_seconds(screens, climbs)
    print(f"{bad or 'none'} of {len(found)} cost too much ({worlds:,} worlds, {seconds:.0f} s of CPU)")
    return 1 if bad else 0


def line(found: Found) -> str:
    """One row of the table."""
    work, mark = found.redoubled, "over" if found.is_over else f"{found.exponent:.1f}"
    objects = sum(party.count for party in found.candidate.times(found.factor).parties)
    return _COLUMNS.format(
        " x ".join(found.pair),
        found.objective,
        mark + ("!" if found.is_finding else " "),
        f"{work.step:,}",
        f"{work.seconds:.2f}",
        f"{work.beside:,}",
        f"{work.kept / objects:,.0f}",
        described(found.candidate),
    )


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("eclectus_e2e pressure", description=pressure.__doc__)
    parser.add_argument(
        "--minutes",
        type=float,
        default=_MINUTES,
        help="of CPU, after which no climb is begun (default: %(default)g)",
    )
    parser.add_argument("--climbs", type=int, help="so many climbs, however long they take")
    parser.add_argument("--seed", type=int, default=1, help="of the first round (default: %(default)s)")
    parser.add_argument(
        "--pairs", nargs="+", metavar="KIND,KIND", help=f"only these pairs of: {', '.join(KINDS)}"
    )
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, default=OBJECTIVES)
    parser.add_argument(
        "--generations", type=int, default=_GENERATIONS, help="of a climb at most (default: %(default)s)"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="climbs at a time (default: one a core)"
    )
    options = parser.parse_args(arguments)
    check_positive(options, "minutes", "climbs", "generations", "jobs")
    options.pairs = PAIRS if options.pairs is None else [_pair(each) for each in options.pairs]
    return options


def _pair(text: str) -> Pair:
    kinds = text.split(",")
    if len(kinds) != 2 or not {*kinds} <= {*KINDS}:
        raise UsageError(f"--pairs {text}: expected two of {', '.join(KINDS)} with a comma between")
    first, second = sorted(kinds, key=list(KINDS).index)
    return first, second


def _searched(options: argparse.Namespace) -> tuple[list[Screened], list[Found]]:
    """What each pair and each climb has cost: all of one seed, then of the next."""
    screens, found, begun, seeds = list[Screened](), list[Found](), 0, count(options.seed)
    share_seconds = _CLIMBING * 60 * options.minutes / (len(options.pairs) * len(options.objectives))
    with Progress("pressure") as progress, ProcessPoolExecutor(options.jobs) as pool:

        def is_open() -> bool:
            used = _cpu_seconds(screens, found)
            bad = sum(each.is_finding for each in _worst(found))
            progress.update(f"{len(found)} climbs, {bad} cost too much, {used:.0f} s of CPU")
            return used < 60 * options.minutes and (options.climbs is None or begun < options.climbs)

        while is_open():
            drawn = list[Screened]()
            for each in pool.map(screen, options.pairs, repeat(next(seeds)), repeat(_SECONDS)):
                drawn.append(each)
                progress.update(f"worlds of {len(drawn)} of {len(options.pairs)} pairs")
            screens += drawn
            waiting, running = deque(in_order(drawn, options.objectives)), set[Future[Found]]()
            while running or (waiting and is_open()):
                while waiting and len(running) < options.jobs and is_open():
                    climb = waiting.popleft()
                    running.add(pool.submit(search, *climb, options.generations, _SECONDS, share_seconds))
                    begun += 1
                done, running = wait(running, return_when=FIRST_COMPLETED)
                found += (ended := [future.result() for future in done])
                for one in ended:
                    if one.is_finding:  # an hour before the table, which no search that is stopped prints
                        progress.say(line(one))
    return screens, found


def _cpu_seconds(screens: list[Screened], climbs: list[Found]) -> float:
    return sum(each.cpu_seconds for each in screens) + sum(each.cpu_seconds for each in climbs)


def _worst(found: list[Found]) -> list[Found]:
    """The worst of each pair and objective."""
    worst: dict[tuple[Pair, str], Found] = {}
    for each in found:
        key = each.pair, each.objective
        worst[key] = max(each, worst.get(key, each), key=lambda one: (one.is_finding, one.exponent))
    return list(worst.values())
