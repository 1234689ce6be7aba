import pytest

from eclectus_operator.node_probes.probe_templates import image_problem

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "reference",
    [
        "busybox",
        "busybox:1.37",
        "library/busybox",
        "a/b/c:v1",
        "localhost/a",
        "localhost:5000/a",
        "reg:5000/a",
        "reg:5000/a/b:1@" + DIGEST,
        "registry.k8s.io/pause:3.10",
        "Reg/a",
        "[fd00::1]:5000/a:1",
        "busybox@" + DIGEST,
        "reg:5000",
        "a__b/c--d.e_f",
    ],
)
def test_a_reference_as_the_specification_allows_it_is_right(reference):
    assert image_problem(reference) == ""


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
    assert message in image_problem(reference)
