import re

import pytest

from eclectus_operator.node_probes.image_names import Image, ImageError, parsed

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("busybox", ("", "busybox", "", "")),
        ("busybox:1.37", ("", "busybox", "1.37", "")),
        ("library/busybox", ("", "library/busybox", "", "")),
        ("a/b/c:v1", ("", "a/b/c", "v1", "")),
        ("localhost/a", ("localhost", "a", "", "")),
        ("localhost:5000/a", ("localhost:5000", "a", "", "")),
        ("reg:5000/a", ("reg:5000", "a", "", "")),
        ("reg:5000/a/b:1@" + DIGEST, ("reg:5000", "a/b", "1", DIGEST)),
        ("registry.k8s.io/pause:3.10", ("registry.k8s.io", "pause", "3.10", "")),
        ("Reg/a", ("Reg", "a", "", "")),
        ("[fd00::1]:5000/a:1", ("[fd00::1]:5000", "a", "1", "")),
        ("busybox@" + DIGEST, ("", "busybox", "", DIGEST)),
        ("reg:5000", ("", "reg", "5000", "")),
        ("a__b/c--d.e_f", ("", "a__b/c--d.e_f", "", "")),
    ],
)
def test_a_reference_has_these_parts_and_is_written_as_before(reference, parts):
    image = parsed(reference)
    assert image == Image(*parts)
    assert str(image) == reference


@pytest.mark.parametrize(
    ("reference", "pulled"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("docker.io/busybox:1", "docker.io/library/busybox:1"),
        ("me/app", "docker.io/me/app:latest"),
        ("reg:5000/app", "reg:5000/app:latest"),
        ("busybox@" + DIGEST, "docker.io/library/busybox@" + DIGEST),
        ("busybox:1@" + DIGEST, "docker.io/library/busybox:1@" + DIGEST),
    ],
)
def test_what_a_node_pulls(reference, pulled):
    assert parsed(reference).pulled == pulled


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("", "'' in the path"),
        ("Busybox", "'Busybox' in the path"),
        ("a//b", "'' in the path"),
        ("a/b/", "'' in the path"),
        ("/a", "'' in the path"),
        ("a___b", "'a___b' in the path"),
        ("a..b/c", "'a..b' is no host name"),
        ("-reg.io/a", "'-reg.io' is no host name"),
        ("reg:port/a", "'reg:port' is no host name"),
        ("a:", "tag ''"),
        ("a:b:c", "tag 'b:c'"),
        ("a:.1", "tag '.1'"),
        ("a:" + "1" * 129, "1 to 128"),
        ("a@", "digest ''"),
        ("a@sha256:abc", "digest 'sha256:abc'"),
        ("a@sha256:" + "0" * 63, "64 hexadecimal digits"),
        ("a@" + DIGEST + "@" + DIGEST, "digest"),
        ("a b", "'a b' in the path"),
        ("a/" * 128 + "b", "longer than 255"),
    ],
)
def test_an_invalid_reference_names_its_wrong_part(reference, message):
    with pytest.raises(ImageError, match=re.escape(message)):
        parsed(reference)
