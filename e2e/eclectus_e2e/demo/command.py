"""The command `demo`."""

import sys

from rich.console import Console

from eclectus_e2e.demo.experiment import run_experiment
from eclectus_e2e.demo.experiments import SHORT, experiments
from eclectus_e2e.demo.options import other_commands, read_options
from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHECKOUT, CLUSTER_DIRECTORY
from eclectus_e2e.testbed.processes import recorded

FOLDER = CHECKOUT / "build" / "demo"
PLAIN_WIDTH = 120  # of tables in a file or pipe


def demo(arguments: list[str]) -> int:
    """Run the experiment that the arguments name, and return the exit code.

    Writes reports and pictures into build/demo. Exit code 1 if a pod was lost or ran twice, a node was
    over-committed, or a constraint violated.
    """
    options = read_options(arguments)
    if options.keep and any(process.alive for process in recorded(CLUSTER_DIRECTORY)):
        raise UsageError("--keep would replace the cluster that is running: end it with `make down` first")
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    sound = [run_experiment(experiment, FOLDER, console).sound for experiment in experiments(options)]
    if options.experiment == SHORT:
        console.print(f"other commands:\n{other_commands()}", highlight=False)
    return 0 if all(sound) else 1
