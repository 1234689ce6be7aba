"""A comparison as `eclectus simulate` writes it."""

import json

import pytest
import yaml
from click.testing import CliRunner

from eclectus.cli.main import program
from short_scenarios import document, poisson

CLASSES = [{"name": "web", "share": 4}, {"name": "batch", "size": {"mean": 9}}]


@pytest.fixture(scope="session")
def comparison_file(tmp_path_factory):
    """Of two profiles with three seeds."""
    folder = tmp_path_factory.mktemp("comparison")
    cluster = {"groups": [{"count": 3, "slots": 2}, {"count": 2, "speed": 4}]}
    place = {"policy": "uniform"}
    profiles = [{"schedulerName": "learning"}, {"schedulerName": "by-chance", "place": place}]
    workload = poisson(0.7)
    workload["poisson"]["classes"] = CLASSES
    fields = document(
        cluster=cluster, workload=workload, profiles=profiles, seeds=3, about="<b>It shows.</b>"
    )
    scenario, written = folder / "small.yaml", folder / "small.json"
    scenario.write_text(yaml.safe_dump(fields))
    ended = CliRunner().invoke(program, ["simulate", str(scenario), "--json", str(written)])
    assert ended.exit_code == 0, ended.output
    (folder / "printed").write_text(ended.stdout)
    return written


@pytest.fixture
def changed(comparison_file, tmp_path):
    """Writes the file with other fields, and says where."""

    def write(**fields):
        path = tmp_path / "changed.json"
        path.write_text(json.dumps(json.loads(comparison_file.read_text()) | fields))
        return path

    return write
