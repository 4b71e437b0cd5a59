"""Documents from anywhere: what is wrong is a sentence with a line or a key, and nothing grows without bound."""

import time
from itertools import pairwise

import pytest

from kerneltrail.errors import ConfigError, DataError
from kerneltrail.store.document import BYTES, DEPTH, VALUES, parse_text, read_json

LETTERS = "abcdefghi"
PAIRS = list(pairwise(LETTERS))
ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{later}: &{later} [{', '.join([f'*{former}'] * 9)}]\n" for former, later in PAIRS
)
MERGES = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{later}: &{later} {{<<: [{', '.join([f'*{former}'] * 9)}]}}\n" for former, later in PAIRS
)

YAML = {
    "no such date": ("a: 1\nb: 2024-13-45", r"it, line 2: '2024-13-45' cannot be read as timestamp"),
    "no whole number": ("a: !!int x", r"line 1: 'x' cannot be read as int"),
    "no number": ("a: !!float x", r"'x' cannot be read as float"),
    "neither true nor false": ("a: !!bool x", r"'x' cannot be read as bool"),
    "5,000 digits": ("a: " + "9" * 5000, r"line 1: .{1,100} cannot be read as int"),
    "4,000 digits": ("a: {b: " + "9" * 4000 + "}", r"a\.b is a whole number of more than 40 digits"),
    "5,000 hexadecimal digits": ("a: 0x" + "f" * 5000, r"a is a whole number of more than 40 digits"),
    "500 lists": ("a: " + "[" * 500 + "]" * 500, rf"line 1: more than {DEPTH} lists or mappings"),
    "300 mappings": ("\n".join(" " * i + "a:" for i in range(300)), rf"line {DEPTH}: more than {DEPTH} lists"),
    "aliases of aliases": (ALIASES, r"line 5: more than 10,000 values, what aliases stand for counted each time"),
    "merges of merges": (MERGES, r"line 5: more than 10,000 values"),
    "an alias of itself": ("a: &a [*a]", r"line 1: \*a stands for nothing that ends before it"),
    "an alias of nothing": ("a: *b", r"\*b stands for nothing"),
    "many values": ("a: [" + "1, " * (VALUES + 1) + "]", r"more than 10,000 values"),
    "a long text": ("a: " + "x" * BYTES, r"it has 200,003 characters; a configuration may have 200,000"),
    "code": ("a: !!python/object/apply:os.system [ls]", r"could not determine a constructor"),
    "a key that is a list": ("? [1]\n: 2", r"a key must be a name"),
}  # fmt: skip
TOML = {
    "5,000 digits": ("a = " + "9" * 5000, r"cannot be read as TOML"),
    "4,000 digits": ("a = " + "9" * 4000, r"a is a whole number of more than 40 digits"),
    "5,000 lists": ("a = " + "[" * 5000 + "]" * 5000, r"more than 40 lists or mappings"),
    "100 lists": ("a = " + "[" * 100 + "]" * 100, r"more than 40 lists or mappings"),
    "1,000 keys": (".".join("a" * 1000) + " = 1", r"more than 40 lists or mappings"),
    "many values": ("a = [" + "1, " * (VALUES + 1) + "]", r"a holds more than 10,000 values"),
}


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [("yaml", *case) for case in YAML.values()] + [("toml", *case) for case in TOML.values()],
    ids=[f"yaml: {name}" for name in YAML] + [f"toml: {name}" for name in TOML],
)
def test_what_cannot_be_read_is_a_sentence_and_quick(language, text, said):
    began = time.process_time()
    with pytest.raises(ConfigError, match=said) as caught:
        parse_text(text, language, "it")
    assert len(str(caught.value)) < 300
    assert time.process_time() - began < 3.0


def test_aliases_and_merges_in_measure_are_fine():
    assert parse_text("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]", "yaml", "it") == {
        "a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": [{"x": 1}, {"x": 1}],
    }  # fmt: skip


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b"9" * 5000])
def test_json_that_cannot_be_read_is_a_sentence(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.json is not JSON"):
        read_json(tmp_path / "a.json")
