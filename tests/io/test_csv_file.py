import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tacit.io.csv_file import LONGEST_LINE, CsvFile, WholeLines, count_lines

FIELDS = st.sampled_from([b"a", b"", b'"', b'""', b'"a"', b'"a,b"', b'a"', b" ", b"\r", b"\xff"])
LINES = st.one_of(
    st.lists(FIELDS, min_size=1, max_size=4).map(b",".join),
    st.lists(FIELDS, min_size=1, max_size=6).map(b"".join),
    st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")),
)


def rows(path, lines, end):
    path.write_bytes(b"a,b\n" + end.join(lines) + end)
    batches = CsvFile(path, "it", ",", False).batches(["a", "b"])
    return [
        row
        for batch in batches
        for row in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
    ]


@given(st.lists(LINES, max_size=8), st.sampled_from([b"\n", b"\r\n"]))
@example([b'1,"2', b"3,4", b"5,6"], b"\n")
@example([b'5" x,"y', b"3,4"], b"\n")
@example([b"1,2\r3,4", b"5,6"], b"\n")
@example([b'"x"y"z,2', b"5,6", b'"a'], b"\n")
@example([b'\xef\xbb\xbf"1,2', b"3,4", b'5,6"'], b"\n")
@example([b"1,\xef\xbf\xbd", b"2,\xff"], b"\n")
def test_a_line_is_read_as_if_it_stood_alone(tmp_path_factory, lines, end):
    path = tmp_path_factory.getbasetemp() / "lines.csv"
    alone = [rows(path, [line], end) for line in lines]
    assert all(len(found) <= 1 for found in alone)
    assert rows(path, lines, end) == [row for found in alone for row in found]


def test_a_stray_quotation_mark_costs_its_own_record_only(tmp_path):
    lines = [b"1,2", b'3,"4', b"5,6", b"7", b"8,9,10", b'"11","1,2"', b'13,"say ""hi"""']
    assert rows(tmp_path / "x.csv", lines, b"\n") == [
        (b"1", b"2"),
        (b"5", b"6"),
        (b"11", b"1,2"),
        (b"13", b'say "hi"'),
    ]


def test_long_lines_are_left_out_wherever_they_stand():
    short, longest = b"s" * 1000 + b"\n", b"l" * (LONGEST_LINE - 1) + b"\n"
    for n_before in (0, 1, 7, 300):
        content = short * n_before + longest + b"x" + longest + short + b"x" * 3 * LONGEST_LINE
        kept = WholeLines(io.BytesIO(content), ",").readall()
        assert kept == b"\n" + short * n_before + longest + short


def test_a_long_line_that_is_not_utf8_is_read(tmp_path):
    long = b"\xff" * (LONGEST_LINE - 4)
    for n in (1, 5):
        found = rows(tmp_path / "x.csv", [b"1,2", long + b",3", long] * n, b"\n")
        assert [b for _, b in found] == [b"2", b"3"] * n


def test_lines_are_counted():
    for content, n in [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2)]:
        assert count_lines(io.BytesIO(content)) == n


def test_a_byte_order_mark_belongs_to_its_own_record(tmp_path):
    # Arrow took it off the front, after lines were vetted: the quote behind it opened a field.
    lines = [b'\xef\xbb\xbf"1,2', b"3,4", b'5,6"']
    assert rows(tmp_path / "x.csv", lines, b"\n") == [tuple(line.split(b",")) for line in lines]


def test_an_empty_line_is_no_record_of_a_single_column(tmp_path):
    path = tmp_path / "x.csv"
    for content, found in [
        (b"", []),
        (b"\n\n", []),
        (b'"\n', []),
        (b'\n1\n\r\n""\n2', [b"1", b"", b"2"]),
    ]:
        path.write_bytes(b"a\n" + content)
        batches = CsvFile(path, "it", ",", False).batches(["a"])
        assert [value for batch in batches for value in batch.column(0).to_pylist()] == found


def test_bytes_that_are_not_utf8_change_no_other_record(tmp_path):
    declared = "\ufffd".encode()
    found = rows(tmp_path / "x.csv", [b"1," + declared, b"2,\xff\xe2\x82", b"3," + declared], b"\n")
    assert found == [(b"1", declared), (b"2", b"\x1a\x1a\x1a"), (b"3", declared)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " ", "|"])
def test_quotation_marks_beside_every_delimiter(tmp_path, delimiter):
    path = tmp_path / "x.csv"
    path.write_bytes(b'a,b\n"1","x y"\n'.replace(b",", delimiter.encode()))
    (batch,) = CsvFile(path, "it", delimiter, False).batches(["a", "b"])
    assert batch.to_pylist() == [{"a": b"1", "b": b"x y"}]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("block", range(8, 16))
def test_a_line_is_read_last_as_it_is_before_another(tmp_path, end, block):
    path = tmp_path / "x.csv"

    def found(*lines):
        path.write_bytes(end.join([b"a,b", *lines]))
        file = CsvFile(path, "it", ",", False, block=block)
        return [row["b"] for batch in file.batches(["a", "b"]) for row in batch.to_pylist()]

    for line in [b"1,2\r", b"1,2\r\r", b"1," + b"2" * (block - 3), b"1," + b"2" * (block - 4)]:
        assert found(line, b"3,4") == [*found(line), b"4"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_as_many_lines_are_counted_as_records_as_are_read(tmp_path, end):
    from random import Random

    from tacit.io.csv_file import CsvFile
    from tests.testing.readers.lines import HEADER, hostile_lines

    hostile = hostile_lines(Random(1), ",", 4096)
    for kind, line in hostile.items():
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.csv"
        path.write_bytes(end.encode().join([HEADER, b"1,2,3,4,5,6", line, b"1,2,3,4,5,6", b""]))
        file = CsvFile(path, "x", ",", False, block=4096)
        counts = file.line_counts()
        n_read = sum(batch.num_rows for batch in file.batches(["age"]))
        assert counts.records == n_read, kind
