"""`python -m eclectus_hack COMMAND ...`: manifests, images, release, test, sizes, venv, audit."""

import sys

from eclectus_e2e.commands import Commands, main

COMMANDS: Commands = {
    "manifests": ("manifests", "manifests", "write the files derived from the chart and from images.yaml"),
    "images": ("images", "images", "build image archives without Docker"),
    "release": ("release.command", "release", "make a release in build/release, and push it"),
    "test": ("stages", "test", "run the tests: fast, live, all (fast and live) or slow"),
    "sizes": ("sizes", "sizes", "list long functions and files, as a hint"),
    "venv": ("venv", "venv", "create the Python environment of this checkout"),
    "audit": ("audit", "audit", "look up known vulnerabilities of the locked packages"),
}

if __name__ == "__main__":
    sys.exit(main("eclectus_hack", COMMANDS, sys.argv[1:]))
