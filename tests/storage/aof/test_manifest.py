"""The manifest: its text, both ways."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.aof.manifest import Manifest, ManifestError, NamedFile, from_bytes, to_bytes
from storage.checksums import crc32c
from tests.support.bits import flipped, refusals

BASE = NamedFile("a.aof.3.base.aof", 3)
FIRST = NamedFile("a.aof.5.incr.aof", 5)
SECOND = NamedFile("a.aof.7.incr.aof", 7)
OLD_BASE = NamedFile("a.aof.2.base.aof", 2)
OLD_INCREMENT = NamedFile("a.aof.4.incr.aof", 4)
LINE = b"file a.aof.1.base.aof seq 1 type b\n"

NAMES = st.binary(min_size=1, max_size=40).filter(
    lambda name: name not in (b".", b"..") and not {0, ord("/")} & set(name)
)
NUMBERS = st.integers(1, 2**63 - 1)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    names = iter(draw(st.lists(NAMES, unique=True, max_size=12)))
    files = [NamedFile(os.fsdecode(name), draw(NUMBERS)) for name in names]
    cut, end = sorted((draw(st.integers(0, len(files))), draw(st.integers(0, len(files)))))
    numbers = draw(st.lists(NUMBERS, unique=True, min_size=end - cut, max_size=end - cut))
    pairs = zip(files[cut:end], sorted(numbers), strict=True)
    increments = tuple(file._replace(number=number) for file, number in pairs)
    base = files[0] if cut else None
    return Manifest(base, increments, tuple(files[1:cut] + files[end:]))


def checked(lines: bytes) -> bytes:
    """These lines and their checksum."""
    return lines + b"#CRC32C:%08x:%d\n" % (crc32c(lines), len(lines))


# --- text ------------------------------------------------------------------------------------


def test_a_manifest_names_the_base_then_history_then_the_increments() -> None:
    manifest = Manifest(BASE, (FIRST, SECOND), (OLD_INCREMENT, OLD_BASE))
    assert to_bytes(manifest) == checked(
        b"file a.aof.3.base.aof seq 3 type b\n"
        b"file a.aof.4.incr.aof seq 4 type h\n"
        b"file a.aof.2.base.aof seq 2 type h\n"
        b"file a.aof.5.incr.aof seq 5 type i\n"
        b"file a.aof.7.incr.aof seq 7 type i\n"
    )


@given(manifests())
def test_what_is_written_is_read_again(manifest: Manifest) -> None:
    text = to_bytes(manifest)
    assert from_bytes(text) == manifest


@given(manifests(), st.data())
def test_a_changed_bit_is_found_wherever_it_is(manifest: Manifest, data: st.DataObject) -> None:
    text = to_bytes(manifest)
    with pytest.raises(ManifestError):
        from_bytes(flipped(text, data.draw(st.integers(0, 8 * len(text) - 1))))


def test_a_changed_bit_is_found_in_each_byte() -> None:
    whole = to_bytes(Manifest(BASE, (FIRST, SECOND), (OLD_BASE,)))
    assert len(list(refusals(whole, from_bytes, ManifestError))) == 8 * len(whole)


def test_a_changed_type_is_told_by_the_line_of_the_checksum() -> None:
    """Nothing else would tell that an increment is taken for history, and removed."""
    text = to_bytes(Manifest(BASE, (FIRST, SECOND))).replace(b"7 type i", b"7 type h")
    with pytest.raises(ManifestError) as raised:
        from_bytes(text)
    assert str(raised.value) == (
        "line 4: the lines above are not those that this checksum was made of"
    )


def test_a_manifest_without_a_checksum_is_read_as_it_is() -> None:
    text = to_bytes(Manifest(BASE, (FIRST,)))
    lines = text[: text.index(b"#")]
    assert from_bytes(b"# of another server\n" + lines) == Manifest(BASE, (FIRST,))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("my file.aof", b'"my file.aof"'),
        ("caf\u00e9", b'"caf\\xc3\\xa9"'),
        ('a"b\\c', b'"a\\"b\\\\c"'),
        ("it's", b'"it\'s"'),
        ("a\tb\n", b'"a\\x09b\\x0a"'),
        ("#x;{}~!", b"#x;{}~!"),
    ],
)
def test_a_name_is_quoted_where_that_is_needed(name: str, written: bytes) -> None:
    manifest = Manifest(NamedFile(name, 1))
    assert to_bytes(manifest) == checked(b"file %s seq 1 type b\n" % written)
    assert from_bytes(to_bytes(manifest)) == manifest


@pytest.mark.parametrize(
    "text",
    [
        b"file a.aof.3.base.aof seq 3 type b\n",
        b"  file\ta.aof.3.base.aof  seq 3 type b \r\n",
        b"type b seq 3 file a.aof.3.base.aof\n",
        b"FILE a.aof.3.base.aof Seq 3 TYPE b\n",
        b"# by hand\nfile a.aof.3.base.aof seq 3 type b\n#\n",
        b"file a.aof.3.base.aof seq 3 type b startoffset 52 endoffset 70\n",
        b'file "a.aof\\x2e3.base.aof" seq 3 type b\n',
        b"file 'a.aof.3.base.aof' seq '3' type b\n",
    ],
)
def test_one_manifest_has_many_forms(text: bytes) -> None:
    assert from_bytes(text) == Manifest(BASE)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        (rb'"\n\r\t\b\a\q\x41\x4"', "\n\r\t\b\aqAx4"),
        (rb"'it\'s \n'", "it's \\n"),
    ],
)
def test_quotes_are_those_of_the_configuration(word: bytes, name: str) -> None:
    assert from_bytes(b"file %s seq 1 type b\n" % word) == Manifest(NamedFile(name, 1))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"", "the manifest is empty: expected lines 'file NAME seq N type b|i|h'"),
        (b"\n", "line 1: expected 'file NAME seq N type b|i|h'"),
        (LINE + b" \t\n", "line 2: expected 'file NAME seq N type b|i|h'"),
        (b"#\n" + LINE[:-1], "line 2: the line has no end: the manifest has been cut off"),
        (LINE + b"\0\0", "line 2: the line has no end: the manifest has been cut off"),
        (b"file a seq 1 type b more\n", "line 1: expected 'file NAME seq N type b|i|h'"),
        (b"seq 1 type b\n", "line 1: 'file' is missing: expected file, seq and type"),
        (b"file a type b\n", "line 1: 'seq' is missing: expected file, seq and type"),
        (b"file a seq 1\n", "line 1: 'type' is missing: expected file, seq and type"),
        (b'file "a seq 1 type b\n', "line 1: a quote is not closed, or not followed by a blank"),
        (b'file "a"b seq 1 type b\n', "line 1: a quote is not closed, or not followed by a blank"),
        (b"file a'b' seq 1 type b\n", "line 1: a quote is not closed, or not followed by a blank"),
        (b"file ../a seq 1 type b\n", "line 1: '../a' is no name of a file in this folder"),
        (b"file .. seq 1 type b\n", "line 1: '..' is no name of a file in this folder"),
        (b"file '' seq 1 type b\n", "line 1: '' is no name of a file in this folder"),
        (b'file "a\\x00" seq 1 type b\n', "line 1: 'a\\x00' is no name of a file in this folder"),
        (
            b"file ../\xe9\x1b seq 1 type b\n",
            "line 1: '../\\xe9\\x1b' is no name of a file in this folder",
        ),
        (
            b"file a seq \x11 type b\n",
            "line 1: '\\x11' is no seq: allowed are 1 to 9223372036854775807",
        ),
        (b"file a seq 0 type b\n", "line 1: '0' is no seq: allowed are 1 to 9223372036854775807"),
        (b"file a seq 1x type b\n", "line 1: '1x' is no seq: allowed are 1 to 9223372036854775807"),
        (
            b"file a seq 9223372036854775808 type b\n",
            "line 1: '9223372036854775808' is no seq: allowed are 1 to 9223372036854775807",
        ),
        (
            b"file a seq 1 type base\n",
            "line 1: 'base' is no type: allowed are b (base), i (increment) and h (history)",
        ),
        (
            LINE + b"file b seq 2 type b\n",
            "line 2: a second base: one file at most has type b",
        ),
        (
            LINE + b"file a.aof.1.base.aof seq 1 type i\n",
            "line 2: the file 'a.aof.1.base.aof' is named a second time",
        ),
        (
            b"file b seq 2 type i\nfile a seq 2 type i\n",
            "line 2: seq 2 follows 2: increments have to rise",
        ),
    ],
)
def test_what_is_wrong_with_a_manifest_is_said_with_its_line(text: bytes, error: str) -> None:
    with pytest.raises(ManifestError) as raised:
        from_bytes(text)
    assert str(raised.value) == error
    assert raised.value.line == (int(error[5]) if error.startswith("line") else 0)


@given(st.binary(max_size=60))
def test_any_other_text_is_an_error_too(text: bytes) -> None:
    try:
        manifest = from_bytes(text)
    except ManifestError:
        return
    assert from_bytes(to_bytes(manifest) or b"#\n") == manifest


# --- the value -------------------------------------------------------------------------------


def test_the_base_is_loaded_before_the_increments() -> None:
    assert Manifest(BASE, (FIRST, SECOND), (OLD_BASE,)).files == (BASE, FIRST, SECOND)
    assert Manifest(None, (FIRST,)).files == (FIRST,)


def test_numbers_go_on_behind_the_highest_that_is_in_use() -> None:
    assert (Manifest().next_base, Manifest().next_increment) == (1, 1)
    manifest = Manifest(BASE, (FIRST, SECOND))
    assert (manifest.next_base, manifest.next_increment) == (4, 8)
    manifest = Manifest(OLD_BASE, (), (NamedFile("h", 9),))
    assert (manifest.next_base, manifest.next_increment) == (10, 10)


def test_a_new_base_makes_history_of_what_it_replaces() -> None:
    manifest = Manifest(OLD_BASE, (OLD_INCREMENT,)).with_increment(FIRST)
    manifest = manifest.with_base(BASE, 1)
    assert manifest == Manifest(BASE, (FIRST,), (OLD_INCREMENT, OLD_BASE))
    assert manifest.without_history() == Manifest(BASE, (FIRST,))


def test_the_first_base_replaces_increments_alone() -> None:
    older = NamedFile("h", 1)
    manifest = Manifest(None, (OLD_INCREMENT, FIRST), (older,)).with_base(BASE, 1)
    assert manifest == Manifest(BASE, (FIRST,), (OLD_INCREMENT, older))
