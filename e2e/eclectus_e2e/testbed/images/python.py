"""The layers above Debian: the packages of a lock file, and the wheel of this checkout.

Both are in /venv, as in the images of the Dockerfiles. The machine's pip installs them; the scripts that it
writes would call the machine's Python, so they are replaced.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from eclectus_e2e.errors import BuildError
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed.images.architectures import MACHINES, own_architecture
from eclectus_e2e.testbed.images.contents import Image
from eclectus_e2e.testbed.images.debian import base_layer, compile_inside, python_name
from eclectus_e2e.testbed.images.layers import Layer, cached, unpack
from eclectus_e2e.testbed.images.shell import run

VENV = "/venv"
GLIBC_MINOR = 36  # of Debian 12, the oldest release with Python 3.11
PROGRAM = f"""\
#!{VENV}/bin/python
import sys

from {{module}} import {{function}}

sys.exit({{function}}())
"""
_THIS_FILE = Path(__file__).read_bytes()


@dataclass(frozen=True)
class Environment:
    """The folder of a virtual environment, and the name of its Python, such as `python3.11`."""

    folder: Path
    python: str

    @property
    def site(self) -> Path:
        """The folder of its packages."""
        return self.folder / "lib" / self.python / "site-packages"

    @property
    def programs(self) -> Path:
        """The folder of its programs."""
        return self.folder / "bin"

    def install(self, architecture: str, *arguments: str | Path) -> None:
        """Install with the machine's pip for this Python; byte code is compiled later."""
        wanted = wheels_for(self.python.removeprefix("python"), linux_platforms(architecture))
        options = ("--quiet", "--no-deps", "--no-compile", "--target", self.site)
        run(sys.executable, "-m", "pip", "install", *options, *wanted, *arguments)
        shutil.rmtree(self.site / "bin", ignore_errors=True)  # scripts that would call the machine's Python


def linux_platforms(architecture: str) -> list[str]:
    """Platforms of the wheels that run on Debian, the newest C library first (PEP 600)."""
    machine = MACHINES[architecture]
    return [f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC_MINOR, 16, -1)] + [
        f"manylinux2014_{machine}"
    ]


def wheels_for(version: str, platforms: Iterable[str]) -> list[str]:
    """pip's options for wheels of another Python or platform than its own."""
    return [
        "--only-binary=:all:",
        f"--python-version={version}",
        *(f"--platform={each}" for each in platforms),
    ]


def dependencies_layer(image: Image, architecture: str) -> Layer:
    """/venv with the locked packages; the first build takes about a minute."""
    lock = CHECKOUT / image.lock
    key = [_THIS_FILE, base_layer().digest.encode(), architecture.encode(), lock.read_bytes()]
    name = f"python-{lock.stem}-{architecture}"
    return cached(name, key, lambda tree: _fill_dependencies(tree, lock, architecture))


def application_layer(image: Image) -> Layer:
    """The wheel of the checkout and its programs; built again after every change of the sources."""
    key = [_THIS_FILE, base_layer().digest.encode(), *_source_parts(image)]
    return cached("application", key, lambda tree: _fill_application(tree, image))


def files_layer(name: str, image: Image) -> Layer:
    """The source files themselves, in the root folder."""

    def fill(tree: Path) -> None:
        for source in image.sources:
            shutil.copy(CHECKOUT / source, tree)

    return cached(name, [_THIS_FILE, *_source_parts(image)], fill)


def _fill_dependencies(tree: Path, lock: Path, architecture: str) -> None:
    with _environment(tree) as environment:
        environment.install(architecture, "--require-hashes", "--requirement", lock)
        version = environment.python.removeprefix("python")
        (environment.folder / "pyvenv.cfg").write_text(
            f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {version}\n"
        )
        environment.programs.mkdir()
        (environment.programs / "python3").symlink_to("/usr/bin/python3")
        (environment.programs / "python").symlink_to("python3")


def _fill_application(tree: Path, image: Image) -> None:
    with _environment(tree) as environment, tempfile.TemporaryDirectory() as scratch:
        environment.install(own_architecture(), "--no-index", _wheel(image, Path(scratch)))
        environment.programs.mkdir()
        for distribution in distributions(path=[str(environment.site)]):
            for entry in distribution.entry_points.select(group="console_scripts"):
                program = environment.programs / entry.name
                program.write_text(PROGRAM.format(module=entry.module, function=entry.attr))
                program.chmod(0o755)


@contextmanager
def _environment(tree: Path) -> Iterator[Environment]:
    """An empty environment to fill; at the end the image's Python compiles its modules.

    Byte code is the same for every architecture, so this machine's base compiles it.
    """
    with tempfile.TemporaryDirectory(dir=tree.parent) as scratch:
        root = Path(scratch)
        unpack([base_layer()], root)
        environment = Environment(root / VENV.lstrip("/"), python_name(root))
        yield environment
        compile_inside(root, VENV)
        environment.folder.rename(tree / environment.folder.name)


def _wheel(image: Image, scratch: Path) -> Path:
    """Build the wheel from the listed sources alone."""
    for source in image.sources:
        target = scratch / "src" / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if (CHECKOUT / source).is_dir():
            shutil.copytree(CHECKOUT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(CHECKOUT / source, target)
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", scratch, scratch / "src")
    wheels = list(scratch.glob("*.whl"))
    if len(wheels) != 1:
        raise BuildError(f"the sources of {image.dockerfile} gave {len(wheels)} wheels, not one")
    return wheels[0]


def _source_parts(image: Image) -> Iterator[bytes]:
    """Path and bytes of every file among an image's sources."""
    for source in image.sources:
        top = CHECKOUT / source
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(CHECKOUT)).encode()
                yield path.read_bytes()
