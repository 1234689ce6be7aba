"""Bills of materials (CycloneDX 1.6): the locked packages, and for images those of Debian."""

import platform
import re
import tarfile
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from eclectus_e2e.testbed.images.layers import Layer
from eclectus_hack.release.locks import entries

STATUS = "var/lib/dpkg/status"  # what is installed, in a layer


@dataclass(frozen=True)
class Package:
    """A package: its package URL, and the SHA-256 of each file that may be installed for it."""

    url: PackageURL
    hashes: tuple[str, ...] = ()


def locked_packages(lock: str) -> Iterator[Package]:
    """The packages of a lock file, with the hashes of their files."""
    for each in entries(lock):
        yield Package(PackageURL("pypi", name=each.name, version=each.version), each.hashes)


def debian_packages(base: Layer) -> Iterator[Package]:
    """The packages that are installed in a base layer, which has the machine's distribution."""
    distribution = platform.freedesktop_os_release()["ID"]
    with tarfile.open(base.tar) as tar:
        file = tar.extractfile(STATUS)
        text = file.read().decode() if file else ""
    for paragraph in text.strip().split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Architecture): (.*)$", paragraph, flags=re.MULTILINE))
        qualifiers = {"arch": fields["Architecture"]}
        yield Package(
            PackageURL("deb", distribution, fields["Package"], fields["Version"], qualifiers=qualifiers)
        )


def document(product: Component, packages: Iterable[Package], seconds: int) -> str:
    """The bill of materials of a product as JSON; `seconds`: since 1970, of its source."""
    bom = Bom(components=[_component(each) for each in sorted(set(packages), key=lambda one: str(one.url))])
    bom.metadata.component = product
    bom.metadata.timestamp = datetime.fromtimestamp(seconds, UTC)
    purls = "\n".join(sorted(str(each.purl) for each in bom.components))
    # Derived from the content, so that the same source gives the same bytes.
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, f"{product.name}\n{product.version}\n{purls}")
    bom.register_dependency(product, bom.components)
    return str(JsonV1Dot6(bom).output_as_string(indent=2)) + "\n"


def product(name: str, version: str, kind: ComponentType) -> Component:
    """What a bill of materials is of."""
    return Component(type=kind, name=name, version=version, bom_ref=f"{name}-{version}")


def _component(package: Package) -> Component:
    references = []
    if package.hashes:
        # A lock admits several files of a package, such as a wheel for each platform.
        index = f"https://pypi.org/simple/{package.url.name}/"
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=each) for each in package.hashes]
        kind = ExternalReferenceType.DISTRIBUTION
        references = [ExternalReference(type=kind, url=XsUri(index), hashes=hashes)]
    return Component(
        type=ComponentType.LIBRARY,
        name=package.url.name,
        version=package.url.version,
        purl=package.url,
        bom_ref=str(package.url),
        external_references=references,
    )
