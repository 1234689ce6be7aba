"""The command `audit`: known vulnerabilities of the locked packages, by pip-audit.

pip-audit has an environment of its own, because it needs thirty packages that nothing else here does.
"""

import argparse
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress
from eclectus_hack import venv

REQUIREMENTS = CHECKOUT / "requirements"
LOCK = REQUIREMENTS / "audit.lock"
FOLDER = CHECKOUT / "build" / "audit"
SERVICE = "https://pypi.org/pypi/pip/24.0/json"  # the form in which pip-audit asks for a version
REACH_SECONDS = 10.0


def audit(arguments: list[str]) -> int:
    """Audit every lock; returns 1 where a package is vulnerable, 0 with a note where PyPI cannot be asked.

    Raises BuildError when pip-audit cannot be installed.
    """
    argparse.ArgumentParser("eclectus_hack audit", description=audit.__doc__).parse_args(arguments)
    problem = why_unreachable(SERVICE)
    if problem:
        print(f"audit: skipped, because {SERVICE} cannot be read: {problem}", file=sys.stderr)
        return 0
    return subprocess.run(command(_program()), cwd=CHECKOUT, check=False).returncode


def command(program: Path) -> list[str]:
    """How pip-audit is called: it looks up the locked versions and installs nothing."""
    locks = [f"--requirement={path.relative_to(CHECKOUT)}" for path in sorted(REQUIREMENTS.glob("*.lock"))]
    return [str(program), "--strict", "--disable-pip", "--require-hashes", "--progress-spinner=off", *locks]


def why_unreachable(url: str) -> str:
    """Why a URL cannot be read; empty if it can."""
    try:
        with urllib.request.urlopen(url, timeout=REACH_SECONDS) as answer:  # noqa: S310 - a constant, https
            answer.read(1)
    except (urllib.error.URLError, OSError) as error:
        return str(getattr(error, "reason", "") or error)
    return ""


def _program() -> Path:
    """pip-audit of the locked version, installed if it is not yet. Raises BuildError."""
    installed, lock = FOLDER / "installed.lock", LOCK.read_bytes()
    if not installed.exists() or installed.read_bytes() != lock:
        with Progress("installing pip-audit", expected="half a minute") as progress:
            venv.create(FOLDER, LOCK, progress)
        installed.write_bytes(lock)
    return FOLDER / "bin" / "pip-audit"
