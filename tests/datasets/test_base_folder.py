import pytest

from tacit.datasets.base import VARIABLE, find_file


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "shared" / "data" / "a").mkdir(parents=True)
    (tmp_path / "shared" / "data" / "a" / "b.gz").touch()
    return tmp_path / "shared" / "data"


def test_an_argument_comes_first(folder, monkeypatch):
    monkeypatch.setenv(VARIABLE, "/nowhere")
    assert find_file("a/b.gz", folder) == folder / "a" / "b.gz"
    assert find_file("a/b.gz", str(folder)) == folder / "a" / "b.gz"


def test_then_the_environment(folder, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(folder))
    assert find_file("a/b.gz") == folder / "a" / "b.gz"


def test_then_the_folder_beside_the_repository(folder, monkeypatch):
    inside = folder.parents[1] / "main" / "src"
    inside.mkdir(parents=True)
    (inside.parent / ".git").mkdir()
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(inside)
    assert find_file("a/b.gz") == folder / "a" / "b.gz"


def test_a_missing_file_says_what_to_set(folder, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(folder)
    with pytest.raises(FileNotFoundError, match=r"a/c\.gz.*folder=.*TACIT_DATA"):
        find_file("a/c.gz")
    with pytest.raises(FileNotFoundError, match=r"/nowhere.*TACIT_DATA"):
        find_file("a/b.gz", "/nowhere")


def test_a_folder_that_was_named_is_the_only_one_looked_at(folder, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(folder))
    with pytest.raises(FileNotFoundError, match="/nowhere"):
        find_file("a/b.gz", "/nowhere")
