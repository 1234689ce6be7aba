"""The load that the scheduler writes on a NodeProbe: valid by the definition, and only if changed."""

import jsonschema
import msgspec
import pytest
import yaml

from eclectus.api.node_probe import FRESH_SECONDS, NodeProbe, decode_page, differs, load_of
from eclectus.model.errors import MalformedError
from eclectus.model.learned import LearnedLoad
from eclectus_e2e.paths import CHART
from eclectus_operator.convert import read
from eclectus_operator.node_probes.dispatch import rate

NOW = 1_800_000_000.0
KNOWN = LearnedLoad(2.0, 10.0, (("web", 0.75), ("default/busybox", 0.25)))


def probe(known=KNOWN, at=NOW):
    status = {} if known is None else {"load": load_of(known, at)}
    body = {"items": [{"metadata": {"name": "p"}, "status": status}]}
    return decode_page(msgspec.json.encode(body)).items[0]


def test_it_is_valid_by_the_definition():
    definition = yaml.safe_load((CHART / "files" / "crds" / "nodeprobes.yaml").read_text())
    status = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    jsonschema.validate({"load": load_of(KNOWN, NOW)}, status)
    many = LearnedLoad(1.0, 1.0, tuple((f"w{number}", 0.01) for number in range(100)))
    jsonschema.validate({"load": load_of(many, NOW)}, status)


def test_the_operator_computes_its_rate_from_it():
    spec = {"nodeSelector": {}, "classes": [{"name": "web", "unit": {"kind": "cpu"}}]}
    limits = {"perHour": 3600, "leastPerHour": 1, "spareShare": 0.1}
    status = {"load": load_of(KNOWN, NOW)}
    found = read({"metadata": {"name": "p"}, "spec": {**spec, "limits": limits}, "status": status}, NodeProbe)
    assert rate(found, NOW) == pytest.approx(0.1 * (10.0 - 2.0))


@pytest.mark.parametrize(
    ("written", "known", "age", "expected"),
    [
        (None, KNOWN, 0, True),
        (KNOWN, KNOWN, 0, False),
        (KNOWN, LearnedLoad(2.1, 10.5, KNOWN.shares), 0, False),
        (KNOWN, LearnedLoad(2.3, 10.0, KNOWN.shares), 0, True),
        (KNOWN, LearnedLoad(2.0, 8.9, KNOWN.shares), 0, True),
        (KNOWN, LearnedLoad(2.0, 10.0, (("web", 0.6), ("default/busybox", 0.4))), 0, True),
        (KNOWN, LearnedLoad(2.0, 10.0, (("web", 0.75), ("other", 0.25))), 0, True),
        (KNOWN, KNOWN, FRESH_SECONDS - 1, False),
        (KNOWN, KNOWN, FRESH_SECONDS, True),
        (KNOWN, LearnedLoad(0.1, 0.0, ()), 0, False),  # of a scheduler that has just begun
        (KNOWN, LearnedLoad(0.1, 0.0, ()), FRESH_SECONDS, True),
        (LearnedLoad(0.0, 0.0, ()), LearnedLoad(0.1, 0.0, KNOWN.shares), 0, True),
    ],
)
def test_it_is_written_when_it_has_changed_or_is_old(written, known, age, expected):
    assert differs(probe(written), known, NOW + age) is expected


def test_anything_but_a_list_is_malformed():
    with pytest.raises(MalformedError, match="NodeProbeList"):
        decode_page(b'{"items": 1}')
