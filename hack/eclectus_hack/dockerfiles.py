"""Renders the Dockerfiles from `e2e/images.yaml`."""

import json
from collections.abc import Mapping
from pathlib import Path

import eclectus
from eclectus_e2e.paths import CHECKOUT, IMAGES
from eclectus_e2e.testbed.images.contents import Contents, Image, contents

HEADER = """\
# `make manifests` writes this file: change {list}. Built from the repository's root:
"""
COMMAND = "#   docker build -f {file} --target {name} -t eclectus-{name}:{version} .\n"
# The build stage, one per file with an image that has a lock.
BUILD = """
FROM {base} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONSAFEPATH=1
WORKDIR /src
# Two environments, so that what builds the wheel does not run beside it.
RUN python -m venv /venv && python -m venv /builder
COPY {lock} {build_lock} requirements/
RUN /venv/bin/pip install --require-hashes -r {lock} \\
 && /builder/bin/pip install --require-hashes -r {build_lock}
{copies}
RUN /builder/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist . \\
 && /venv/bin/pip install --no-deps --no-index /dist/*.whl \\
 && /venv/bin/pip uninstall --yes pip
"""
IMAGE = """
# {about}
FROM {base} AS {name}
{holds}
# `nonroot` by number, so that runAsNonRoot can be checked without reading /etc/passwd.
USER {user}
ENTRYPOINT {entrypoint}
CMD {cmd}
"""
ENVIRONMENT = """\
# The folder a program starts in is never a place to import from.
ENV PATH=/venv/bin:$PATH {variables}
COPY --from=build /venv /venv"""


def dockerfiles() -> Mapping[Path, str]:
    """The text of every Dockerfile named in the list, by path."""
    listed = contents()
    files = sorted({image.dockerfile for image in listed.images.values()})
    return {CHECKOUT / file: render(file, listed) for file in files}


def render(file: str, listed: Contents) -> str:
    """The text of one Dockerfile: build commands as comments, then its images in the order of the list."""
    images = {name: image for name, image in listed.images.items() if image.dockerfile == file}
    text = HEADER.format(list=IMAGES.relative_to(CHECKOUT))
    for name in images:
        text += COMMAND.format(file=file, name=name, version=eclectus.__version__)
    for name, image in images.items():
        if image.lock:
            copies = "\n".join(_copies(image))
            text += BUILD.format(
                base=image.base, lock=image.lock, build_lock=listed.build_lock, copies=copies
            )
        text += _stage(name, image, listed.user)
    return text


def _stage(name: str, image: Image, user: str) -> str:
    variables = " ".join(f"{key}={value}" for key, value in image.environment.items())
    files = "\n".join(f"COPY {source} /{Path(source).name}" for source in image.sources)
    return IMAGE.format(
        about=image.about,
        base=image.base,
        name=name,
        holds=ENVIRONMENT.format(variables=variables) if image.lock else files,
        user=user,
        entrypoint=_list(image.entrypoint),
        cmd=_list(image.cmd),
    )


def _copies(image: Image) -> list[str]:
    """One COPY for all files and one for each folder, because COPY copies the contents of a folder."""
    files = [source for source in image.sources if (CHECKOUT / source).is_file()]
    folders = [source for source in image.sources if source not in files]
    return [f"COPY {' '.join(files)} ./", *(f"COPY {folder} {folder}" for folder in folders)]


def _list(values: tuple[str, ...]) -> str:
    return json.dumps(values)
