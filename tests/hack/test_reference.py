"""What the pages of docs/reference contain; tests/charts/test_manifests.py says when one is stale."""

import re

import click

from eclectus.cli.main import program
from eclectus.config.process_settings import ProcessSettings
from eclectus.config.settings_reading import settings_of
from eclectus.policies.table import ROLES
from eclectus_hack.reference import cli, crds, markdown, settings


def test_every_setting_of_every_section_and_policy_has_a_row():
    text = settings.page()
    sections = {key: kind for key, (_, kind, _) in settings_of(ProcessSettings).items()}
    sections |= {f"{role}: {name}": kind for role, known in ROLES.items() for name, kind in known.items()}
    for heading, kind in sections.items():
        part = text.partition(f"\n### {heading}\n")[2].partition("\n##")[0]
        rows = re.findall(r"^\| `(\w+)` \|.*\| `.+` \| \w.* \|", part, flags=re.MULTILINE)
        assert rows == list(settings_of(kind)), heading


def test_the_help_of_every_command_is_shown():
    headings = re.findall(r"^## eclectus ([\w-]+)$", cli.page(), flags=re.MULTILINE)
    assert headings == sorted(program.list_commands(click.Context(program)))


def test_fields_within_lists_and_objects_have_rows():
    schema = {
        "required": ["a"],
        "properties": {
            "a": {
                "type": "array",
                "maxItems": 3,
                "items": {"type": "object", "properties": {"b": {"type": "integer", "default": 0}}},
            },
            "c": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Words."},
        },
    }
    assert list(crds._fields(schema, "spec.")) == [
        ["**`spec.a`**", "list of object", "", "at most 3 items", ""],
        ["`spec.a[].b`", "integer", "`0`", "", ""],
        ["`spec.c`", "map of string", "", "", "Words."],
    ]


def test_a_bar_in_a_cell_does_not_end_it():
    assert markdown.table(["a"], [["b|c\nd"]]).splitlines()[-1] == r"| b\|c d |"


def test_every_field_of_the_custom_resources_has_a_description():
    fields = re.findall(r"^\| \**`(?:spec|status).*$", crds.page(), flags=re.MULTILINE)
    assert len(fields) > 90
    assert [line for line in fields if line.endswith("|  |")] == []
