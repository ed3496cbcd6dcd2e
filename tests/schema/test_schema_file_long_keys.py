from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tacit.schema import Schema, SchemaError

LONG = ".".join(["a"] * 17)


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG} = 1",
        f"[columns]\nage = {{ kind = 'ignored', {LONG} = 1 }}",
        f"[{LONG}]",
        f"[[ {LONG} ]]",
        f"{LONG.replace('a', ' a	')} = 1",
        f"""{LONG.replace("a", '"a.b"')} = 1""",
        f"{LONG.replace('a', chr(39) + 'a#' + chr(39))} = 1",
        f'x = """a"""""\n{LONG} = "b"',
        f'x = [ """a"""", "{LONG}" ]\n{LONG} = "b"',
        f'x = "\\"" # "\n{LONG} = 1',
    ],
)
def test_a_long_dotted_key_is_refused_before_it_is_parsed(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_: str) -> None:
        raise AssertionError("parsed")

    path = tmp_path / "schema.toml"
    path.write_text(text)
    monkeypatch.setattr(tomllib, "loads", never)  # whose time grows with the square of the parts
    with pytest.raises(SchemaError, match=r"line \d has a dotted key of more than 16 parts"):
        Schema.from_file(path)


def test_dots_in_texts_and_comments_are_no_keys(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(
        f"# {LONG}\n[columns]\n"
        f'town = {{ kind = "category", values = ["{LONG}", \'{LONG}.b\', """x.\n{LONG}"""] }}\n'
        f'"{LONG}" = {{ kind = "number", lower = 0.5, upper = 1.5 }}\n'
    )
    assert Schema.from_file(path).columns[1].name == LONG
