"""Objects nested as deep as the API server takes them, on the Python versions whose decoder has a limit."""

import shutil
import subprocess
from pathlib import Path

import pytest

from eclectus.api.common import SERVER_LEVELS_MOST
from eclectus_operator import deep_json

# The module alone is loaded, because another Python has none of the packages that the operator needs.
PROGRAM = f"""
import json, sys, types
typing_extensions = types.ModuleType("typing_extensions")
typing_extensions.override = lambda method: method
sys.modules["typing_extensions"] = typing_extensions
sys.path.insert(0, {str(Path(deep_json.__file__).parent)!r})
import deep_json
sys.setrecursionlimit(3 * {SERVER_LEVELS_MOST})
levels = {SERVER_LEVELS_MOST} - 100
deep = '{{"a":' * levels + '{{"b":[1,2.5,"c"]}}' + "}}" * levels
{{install}}
found = json.loads(deep)
for _ in range(levels):
    found = found["a"]
print(found, json.loads("[1]"))
"""


def decoded(install):
    python = shutil.which("python3.12")
    if python is None or subprocess.run([python, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no Python 3.12")
    program = PROGRAM.replace("{install}", install)
    return subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)


def test_what_python_3_12_cannot_decode_is_decoded():
    done = decoded("deep_json.decode_deep_objects()")
    assert done.stdout.strip() == "{'b': [1, 2.5, 'c']} [1]", done.stderr


def test_without_it_python_3_12_ends_there():
    assert "RecursionError" in decoded("").stderr


def test_other_texts_are_decoded_as_before():
    decoder = deep_json.DeepDecoder()
    assert decoder.decode(' {"a": [1, null, true]} ') == {"a": [1, None, True]}
    with pytest.raises(ValueError, match="Extra data"):
        decoder.decode("1 2")
