"""Runs upstream's specs against a cluster, and prints the result of each when it ends."""

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from eclectus_e2e.errors import StartError
from eclectus_e2e.upstream.known_failures import KnownFailure
from eclectus_e2e.upstream.results import Judged, Outcome, judge, read_results

_POLL_SECONDS = 0.5
_LOG_TAIL_LINES = 25
_FLAGS = (
    "--provider=skeleton",  # no cloud
    "--minStartupPods=0",  # kube-system has no pods here
    "--node-schedulable-timeout=1m",  # by default half an hour
    "--dump-logs-on-failure=false",  # there are no containers with logs
    "--ginkgo.skip=OffByDefault",  # features that the control plane has switched off
    "--ginkgo.no-color",
    "--ginkgo.v",  # the log has the steps of every spec
    "--ginkgo.seed=1",  # the framework shuffles the specs
)


def run_specs(
    program: Path, kubeconfig: Path, folder: Path, focus: str, known_failures: Mapping[str, KnownFailure]
) -> list[Judged]:
    """Run the specs whose name matches `focus`, with results and log in `folder`.

    Raises StartError with the end of the log when no spec runs, or when not a spec but the program failed.
    """
    results, log = folder / "results.jsonl", folder / "e2e.test.log"
    results.unlink(missing_ok=True)
    command = [str(program), f"--kubeconfig={kubeconfig}", f"--spec-results={results}", *_FLAGS]
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [*command, f"--ginkgo.focus={focus}"], stdout=out, stderr=subprocess.STDOUT
        ) as specs,
    ):
        try:
            judged = _follow(specs, results, known_failures)
        except BaseException:  # also Ctrl-C: the specs must not outlive the cluster
            specs.kill()
            raise
    has_failed = any(one.outcome in (Outcome.FAILED, Outcome.KNOWN) for one in judged)
    if not judged or has_failed != bool(specs.returncode):
        problem = f"e2e.test ended with exit code {specs.returncode} after {len(judged)} specs"
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])
        raise StartError(f"{problem}, focus {focus!r}; the end of {log}:\n{tail}")
    return judged


def _follow(
    specs: "subprocess.Popen[bytes]", results: Path, known_failures: Mapping[str, KnownFailure]
) -> list[Judged]:
    """Print each result as soon as it is there; returns all when the program has ended."""
    judged: list[Judged] = []
    has_ended = False
    while not has_ended:
        has_ended = specs.poll() is not None  # before reading, so that the last results are read
        for result in read_results(results)[len(judged) :]:
            judged.append(judge(result, known_failures))
            print(judged[-1].line, flush=True)
        time.sleep(0 if has_ended else _POLL_SECONDS)
    return judged
