"""`python -m eclectus_hack COMMAND ...`: the table of commands."""

import sys

from eclectus_e2e.commands import Commands, main

COMMANDS: Commands = {
    "manifests": ("manifests", "manifests", "write what is derived from the chart and the list of images"),
    "images": ("images", "images", "build the images' archives without Docker"),
    "sizes": ("sizes", "sizes", "name functions and files that have grown long (a hint)"),
}

if __name__ == "__main__":
    sys.exit(main("eclectus_hack", COMMANDS, sys.argv[1:]))
