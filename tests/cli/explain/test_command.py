"""Which options of `explain` go together, and whom it asks."""

import pytest
from click.testing import CliRunner

from eclectus.cli.explain import transport
from eclectus.cli.explain.transport import NOTHING_ELSE, Source, Target
from eclectus.cli.main import program


@pytest.fixture
def asked(monkeypatch):
    """What the scheduler is asked; it answers about a node."""
    found = []

    async def answer(access, target, source, question):
        assert question == NOTHING_ELSE
        found.append((access.source, target, source))
        return b'{"name":"n1","conditions":["full"],"summary":"nothing is left of cpu"}'

    monkeypatch.setattr(transport, "answer_from_scheduler", answer)
    return found


def invoke(*arguments):
    return CliRunner().invoke(program, ["explain", *map(str, arguments)])


def test_without_a_tape_the_scheduler_is_asked(asked, kubeconfig):
    ended = invoke("node/n1", "--kubeconfig", kubeconfig)
    assert ended.exit_code == 0, ended.output
    assert "nothing is left of cpu" in ended.stdout
    assert asked == [(str(kubeconfig), Target("node", "n1"), Source())]


def test_the_namespace_is_that_of_the_context_unless_it_is_given(asked, kubeconfig):
    invoke("pod/x", "--kubeconfig", kubeconfig)
    invoke("pod/x", "--kubeconfig", kubeconfig, "-n", "other")
    assert [target for _, target, _ in asked] == [Target("pod", "x", "mine"), Target("pod", "x", "other")]


def test_options_say_which_scheduler_and_how(asked, kubeconfig, tmp_path):
    authority, token = tmp_path / "ca", tmp_path / "token"
    for each in (authority, token):
        each.write_text("x")
    options = ["--server", "https://h:1", "--certificate-authority", authority, "--token-file", token]
    invoke("node/n1", "--kubeconfig", kubeconfig, *options, "--scheduler-name", "batch")
    assert [source for _, _, source in asked] == [Source("batch", "https://h:1", authority, token)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--at", "9"], "--at is a moment of a tape: give --from too"),
        (["--from", __file__, "--server", "https://h:1"], "--from asks no scheduler"),
        (["--from", __file__, "--token-file", __file__], "--from asks no scheduler"),
    ],
)
def test_a_tape_and_a_scheduler_do_not_go_together(asked, kubeconfig, options, words):
    ended = invoke("pod/x", "--kubeconfig", kubeconfig, *options)
    assert ended.exit_code == 2
    assert words in " ".join(ended.output.split())
    assert not asked
