"""Every command that a page names exists, and is run by a test or listed with the reason why not."""

import importlib.util
import re

import click
import pytest

from command_table import FAST, LIVE, NOT_RUN, SLOW
from eclectus.cli.main import program
from eclectus.cli.verbs import WithVerbs
from eclectus_e2e.__main__ import COMMANDS as E2E_COMMANDS
from eclectus_e2e.paths import CHECKOUT
from eclectus_hack.__main__ import COMMANDS as HACK_COMMANDS
from page_commands import Named, commands_of, in_blocks, in_sentences, without_comment

MAKEFILE = (CHECKOUT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, flags=re.MULTILINE))
TABLES = {"eclectus_e2e": E2E_COMMANDS, "eclectus_hack": HACK_COMMANDS}


def tables_of(command):
    """The tables that hold a command."""
    named = [name for name, table in (("FAST", FAST), ("LIVE", LIVE), ("SLOW", SLOW)) if command in table]
    return named + ["NOT_RUN"] * any(matches(pattern, command) for pattern in NOT_RUN)


def matches(pattern, command):
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), command, flags=re.DOTALL) is not None


def test_every_command_in_a_code_block_is_run_or_listed_with_the_reason():
    unknown = [str(named) for named in in_blocks() if len(tables_of(named.command)) != 1]
    assert unknown == [], "add each to exactly one table of tests/support/pages/command_table.py"


def test_the_tables_list_only_what_a_page_names():
    commands = {named.command for named in in_blocks()}
    entries = [*FAST, *LIVE, *SLOW, *NOT_RUN]
    unused = [entry for entry in entries if not any(matches(entry, command) for command in commands)]
    assert unused == [], "no page names it any more: remove it from tests/support/pages/command_table.py"


def named(program):
    return [each for each in in_blocks() + in_sentences() if each.words[0] == program]


def test_every_make_target_and_variable_exists():
    found = named("make")
    assert len(found) > 20
    missing = []
    for each in found:
        for word in each.words[1:]:
            variable, equals, _ = word.partition("=")
            exists = re.search(rf"\b{variable}\b", MAKEFILE) if equals else word in TARGETS
            missing += [] if exists else [f"{each}: {word}"]
    assert missing == []


def problem(words):
    """What is wrong with an `eclectus ...` command line, or None. Words in capitals stand for anything."""
    command: click.Command = program
    words = list(words)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        if name.isupper():
            return None
        found = command.get_command(click.Context(command), name)
        if found is None:
            return f"no command {name!r}"
        command = found
    if isinstance(command, WithVerbs) and words and words[0] in command.verbs:
        command = command.verb(words.pop(0))
    options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    unknown = [word for word in words if word.startswith("-") and word.partition("=")[0] not in options]
    unknown = [word for word in unknown if word not in ("-h", "--help")]
    if command.name == "simulate" and words and re.fullmatch(r"[a-z-]+", words[0]):
        unknown += [] if (CHECKOUT / "scenarios" / f"{words[0]}.yaml").exists() else [words[0]]
    return f"unknown: {', '.join(unknown)}" if unknown else None


def test_every_subcommand_and_option_of_eclectus_exists():
    found = named("eclectus")
    assert len(found) > 20
    assert [f"{each}: {wrong}" for each in found if (wrong := problem(each.words[1:]))] == []


def test_every_module_and_its_command_exist():
    found = [each for each in named("python") if each.words[1] == "-m"]
    assert len(found) >= 3
    for each in found:
        module, arguments = each.words[2], each.words[3:]
        assert importlib.util.find_spec(module), str(each)
        if table := TABLES.get(module):
            assert arguments[0] in table, str(each)


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["simulat"], "no command 'simulat'"),
        (["simulate", "two-speed"], "unknown: two-speed"),
        (["simulate", "two-speeds", "--sed=1"], "unknown: --sed=1"),
        (["speeds", "-w"], None),
        (["dag", "logs", "etl", "--stage", "read"], None),
        (["dag", "suspend", "etl", "--stage", "read"], "unknown: --stage"),
        (["simulate", "FILE", "--seeds", "3"], None),
    ],
)
def test_a_wrong_name_is_found(words, wrong):
    assert problem(words) == wrong


def test_commands_are_read_from_indented_and_fenced_blocks():
    text = (
        "Text `make a`.\n\n    make b && source x    # why\n    $ eclectus c \\\n      --d 'e  f'\n"
        "    other\n\n- text\n\n```sh\nkubectl eclectus g\n\nhelm h  # i\n```\nmake nothing\n"
    )
    assert list(commands_of(text, "p")) == [
        Named("make b", "p", 3),
        Named("eclectus c --d 'e  f'", "p", 4),
        Named("kubectl eclectus g", "p", 11),
        Named("helm h", "p", 13),
    ]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("make a   what it does", "make a"),
        ("make a # what", "make a"),
        ("make A='b  #c'  d", "make A='b  #c'"),
        ("make a", "make a"),
    ],
)
def test_the_description_beside_a_command_is_left_out(line, command):
    assert without_comment(line) == command
