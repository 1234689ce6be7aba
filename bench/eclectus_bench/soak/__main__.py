"""`make soak`: memory, steps, Leases and errors of scheduler and operator on a large, busy cluster."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

import msgspec
import numpy as np

from eclectus_bench.match import OUTPUT
from eclectus_bench.soak.run import measure
from eclectus_bench.soak.sizes import FULL, QUICK, Attack, Sizes
from eclectus_bench.soak.verdict import Soak, rows, verdict
from eclectus_e2e.errors import E2EError
from eclectus_e2e.pairs import ratio_interval

NUMBERS = {
    "nodes": "nodes without kubelets, which this process plays",
    "pods": "pods that stay on the nodes",
    "pending": "pods that find no room, from a fifth of the time on",
    "shapes": "different specs of these",
    "probed": "nodes of which a NodeProbe asks for benchmarks",
    "attackers": "pods by which a tenant attacks in the last seven tenths of the time, such as 1000",
    "pairs": "attacks whose pods Eclectus serves, and as many that nobody serves, to see what the rest costs",
}


def main(arguments: Sequence[str]) -> int:
    """Run a soak, print, write build/bench/soak.json. Returns 1 where a bound is exceeded."""
    sizes = _sizes(arguments)
    print(_course(sizes), flush=True)
    soak = measure(sizes, lambda line: print(line, flush=True))
    print("\n" + "\n".join(_summary(soak)) + "\n")
    print("\n".join(verdict(soak)))
    OUTPUT.mkdir(parents=True, exist_ok=True)
    file = OUTPUT / "soak.json"
    content = {**asdict(soak), "verdict": [{**asdict(row), "kept": row.kept} for row in rows(soak)]}
    for reading in content["readings"]:  # JSON has no name for the last bucket, which has no bound
        reading["steps"] = {str(bound): count for bound, count in reading["steps"].items()}
    file.write_bytes(msgspec.json.format(msgspec.json.encode(content)))
    print(f"\nwritten: {file}")
    return 0 if all(row.kept for row in rows(soak)) else 1


def _course(sizes: Sizes) -> str:
    return (
        f"{sizes.minutes:g} minutes: {sizes.nodes:,} nodes with {sizes.pods:,} pods, {sizes.rate:g} pods/s "
        f"that arrive and run for {sizes.life_seconds:g} s; from minute {sizes.pending_from / 60:.1f}, once "
        f"a probe has ended, {sizes.pending:,} pods of {sizes.shapes:,} shapes that find no room"
        + "".join(
            f"; a tenant attacks from minute {each.attack[0] / 60:.1f} to {each.attack[1] / 60:.1f}"
            f"{'' if each.served else ', with pods that nobody serves'}"
            for each in sizes.attacks
        )
    )


def _summary(soak: Soak) -> list[str]:
    renewals = ", ".join(f"{count} of {name}" for name, count in sorted(soak.renewals.items()))
    p50, p99 = np.percentile(soak.waits, [50, 99]) if soak.waits else (0.0, 0.0)
    return [
        f"arriving pods: {len(soak.waits):,} bound, after {p50:.2f} s in the median, {p99:.2f} s (99th "
        f"percentile); {len(soak.unbound)} wait",
        f"renewals: {renewals}",
        f"probes: {soak.probes['succeeded']} succeeded, {soak.probes['failed']} failed",
        *(_attack(soak) if soak.sizes.attackers else ()),
    ]


def _attack(soak: Soak) -> Iterator[str]:
    """What others waited for in each calm and beside each attack, and the ratios with their intervals."""
    ratios = {}
    for served, whose in ((True, "an attack"), (False, "an attack that nobody serves")):
        found = soak.attacked(served=served)
        ratios[served] = [each.ratio for each in found]
        times = ", ".join(f"{one.beside:.2f} ({one.calm:.2f})" for one in found)
        yield f"99th percentile of waits beside {whose}, and before it: {times} s"
        yield f"times as long: {ratio_interval(ratios[served]).text()}"
        yield from _parts(soak, whose, [each for each in soak.sizes.attacks if each.served == served])
    both = [one / other for one, other in zip(ratios[True], ratios[False], strict=True) if other]
    yield f"the first over the second, in pairs: {ratio_interval(both).text()}"


def _parts(soak: Soak, whose: str, attacks: Sequence[Attack]) -> Iterator[str]:
    spans = {"before": [each.calm for each in attacks], "beside": [each.attack for each in attacks]}
    for when, parts in spans.items():
        waits = soak.mean_waits(parts)
        yield (
            f"mean wait {when} {whose}: {waits.whole:.3f} s, of which {waits.undecided:.3f} s until the "
            f"scheduler decided, {waits.bind:.3f} s for the bind; the rest is API server's and bench's"
        )
        cores = ", ".join(f"{name} {used:.2f}" for name, used in soak.cores(parts).items())
        yield f"cores {when} {whose}: {cores}"
    yield (
        "steps beside each: "
        + ", ".join(f"{soak.step_p99(*span) * 1000:,.0f}" for span in spans["beside"])
        + " ms (99th percentile)"
    )


def _sizes(arguments: Sequence[str]) -> Sizes:
    """Raises UsageError."""
    parser = argparse.ArgumentParser("eclectus_bench.soak", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to check that it runs: a minute")
    parser.add_argument("--minutes", type=float, help=f"length; {FULL.minutes:g} by default")
    for name, what in NUMBERS.items():
        parser.add_argument(f"--{name}", type=int, help=f"{what}; {getattr(FULL, name):,} by default")
    parser.add_argument("--rate", type=float, help=f"pods a second that arrive; {FULL.rate:g} by default")
    options = vars(parser.parse_args(arguments))
    base = QUICK if options.pop("quick") else FULL
    return replace(base, **{name: value for name, value in options.items() if value is not None})


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except E2EError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(1)
