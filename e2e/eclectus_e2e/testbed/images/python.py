"""The layers above Debian: what a lock file names, and the wheel of this checkout.

Both lie in /venv, where the Dockerfiles' images have them. The machine's pip fills it, so its programs
would begin with the machine's Python: they are written anew.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from eclectus_e2e.errors import BuildError
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed.images.contents import Image
from eclectus_e2e.testbed.images.debian import base_layer, compile_inside, python_name
from eclectus_e2e.testbed.images.layers import Layer, cached, unpack
from eclectus_e2e.testbed.images.shell import run

VENV = "/venv"
PROGRAM = f"""\
#!{VENV}/bin/python
import sys

from {{module}} import {{function}}

sys.exit({{function}}())
"""
_RECIPE = Path(__file__).read_bytes()


@dataclass(frozen=True)
class Environment:
    """A virtual environment's folder, and the name of the Python (`python3.11`) that it is for."""

    folder: Path
    python: str

    @property
    def site(self) -> Path:
        """Where its packages lie."""
        return self.folder / "lib" / self.python / "site-packages"

    @property
    def programs(self) -> Path:
        """Where its programs lie."""
        return self.folder / "bin"

    def install(self, *arguments: str | Path) -> None:
        """Let the machine's pip install for this Python, as source alone: byte code comes later."""
        version = self.python.removeprefix("python")
        foreign = ("--python-version", version, "--only-binary=:all:", "--no-compile", "--target", self.site)
        run(sys.executable, "-m", "pip", "install", "--quiet", *foreign, *arguments)
        shutil.rmtree(self.site / "bin", ignore_errors=True)  # programs of the machine's Python


def dependencies_layer(image: Image) -> Layer:
    """/venv with the locked packages; about a minute on first use."""
    lock = CHECKOUT / image.lock
    key = [_RECIPE, base_layer().digest.encode(), lock.read_bytes()]
    return cached(f"python-{lock.stem}", key, lambda tree: _fill_dependencies(tree, lock))


def application_layer(image: Image) -> Layer:
    """The wheel of the checkout and its programs; new with every change of the sources."""
    key = [_RECIPE, base_layer().digest.encode(), *_source_parts(image)]
    return cached("application", key, lambda tree: _fill_application(tree, image))


def files_layer(name: str, image: Image) -> Layer:
    """The sources themselves, in the root folder."""

    def fill(tree: Path) -> None:
        for source in image.sources:
            shutil.copy(CHECKOUT / source, tree)

    return cached(name, [_RECIPE, *_source_parts(image)], fill)


def _fill_dependencies(tree: Path, lock: Path) -> None:
    with _environment(tree) as environment:
        environment.install("--require-hashes", "--requirement", lock)
        version = environment.python.removeprefix("python")
        (environment.folder / "pyvenv.cfg").write_text(
            f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {version}\n"
        )
        environment.programs.mkdir()
        (environment.programs / "python3").symlink_to("/usr/bin/python3")
        (environment.programs / "python").symlink_to("python3")


def _fill_application(tree: Path, image: Image) -> None:
    with _environment(tree) as environment, tempfile.TemporaryDirectory() as scratch:
        environment.install("--no-deps", "--no-index", _wheel(image, Path(scratch)))
        environment.programs.mkdir()
        for distribution in distributions(path=[str(environment.site)]):
            for entry in distribution.entry_points.select(group="console_scripts"):
                program = environment.programs / entry.name
                program.write_text(PROGRAM.format(module=entry.module, function=entry.attr))
                program.chmod(0o755)


@contextmanager
def _environment(tree: Path) -> Iterator[Environment]:
    """An environment to fill; in the end its modules are compiled by the image's own Python."""
    with tempfile.TemporaryDirectory(dir=tree.parent) as scratch:
        root = Path(scratch)
        unpack([base_layer()], root)
        environment = Environment(root / VENV.lstrip("/"), python_name(root))
        yield environment
        compile_inside(root, VENV)
        environment.folder.rename(tree / environment.folder.name)


def _wheel(image: Image, scratch: Path) -> Path:
    """The wheel that the sources of the list make, and nothing else of the checkout."""
    for source in image.sources:
        to = scratch / "src" / source
        to.parent.mkdir(parents=True, exist_ok=True)
        if (CHECKOUT / source).is_dir():
            shutil.copytree(CHECKOUT / source, to, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(CHECKOUT / source, to)
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", scratch, scratch / "src")
    wheels = list(scratch.glob("*.whl"))
    if len(wheels) != 1:
        raise BuildError(f"the sources of {image.dockerfile} made {len(wheels)} wheels, not one")
    return wheels[0]


def _source_parts(image: Image) -> Iterator[bytes]:
    """Path and bytes of every file among an image's sources."""
    for source in image.sources:
        top = CHECKOUT / source
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(CHECKOUT)).encode()
                yield path.read_bytes()
