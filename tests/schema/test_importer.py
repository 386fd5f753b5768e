"""From jars and folders to definition files."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from kwiresniff.errors import SchemaError
from kwiresniff.schema.apis import DATA, read_data
from kwiresniff.schema.importer import (
    HEADERS,
    in_order_of_age,
    merge_sources,
    read_files,
    read_source,
    release_name,
    write_files,
)


def definition(kind: str, versions: str, *fields: str, name: str = "Sample", key: int = 3) -> str:
    """A definition in Kafka's form; each field ``NAME TYPE VERSIONS``."""
    words = [field.split() for field in fields]
    document = {
        "apiKey": key,
        "type": kind,
        "name": f"{name}{kind.capitalize()}",
        "validVersions": versions,
        "flexibleVersions": "none",
        "fields": [{"name": one, "type": two, "versions": three} for one, two, three in words],
    }
    return "// A licence.\n" + json.dumps(document)


def folder(path: Path, *definitions: str) -> Path:
    path.mkdir()
    for number, text in enumerate(definitions):
        (path / f"{number}.json").write_text(text)
    return path


def test_a_jar_and_a_folder_give_the_same(tmp_path: Path) -> None:
    text = definition("request", "0", "Name string 0+")
    jar = tmp_path / "kafka-clients-9.9.9.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("common/message/SampleRequest.json", text)
        archive.writestr("META-INF/other.json", "{}")
        archive.writestr("A.class", b"\xca\xfe\xba\xbe")
    assert read_source(jar) == read_source(folder(tmp_path / "folder", text))


def test_a_single_definition_gives_what_a_folder_with_it_gives(tmp_path: Path) -> None:
    """A definition is named as in Kafka's source tree (``MetadataResponse.json``), comments included."""
    text = definition("request", "0", "Name string 0+")
    source = folder(tmp_path / "folder", text)
    assert read_source(source / "0.json") == read_source(source)
    (source / "1.json").write_text("{}")
    with pytest.raises(SchemaError, match="no message definitions in it"):
        read_source(source / "1.json")


def test_releases_are_merged_under_the_newest_name(tmp_path: Path) -> None:
    old = folder(
        tmp_path / "old",
        definition("request", "0-1", "A int8 0+", name="Sampel"),
        definition("response", "0-1", "E int16 0+", name="Sampel"),
    )
    new = folder(
        tmp_path / "new",
        definition("request", "1-2", "A int8 0+", "B int8 2+"),
        definition("response", "1-2", "E int16 0+"),
    )
    write_files(merge_sources([read_source(old), read_source(new)]), tmp_path / "out")
    assert (tmp_path / "out" / "Sample.txt").read_text() == (
        "api 3 Sample\nwas Sampel\n\nrequest 0-2\n  a int8\n  b int8 2+\n\nresponse 0-2\n  e int16\n"
    )
    assert (tmp_path / "out" / "index.txt").read_text() == "3 Sample 0-2 0-2 - - Sampel\n"


def test_an_api_that_is_obsolete_in_the_newest_release_stays(tmp_path: Path) -> None:
    old = folder(tmp_path / "old", definition("request", "0-1", "A int8 0+"), definition("response", "0-1"))
    new = folder(tmp_path / "new", definition("request", "none"), definition("response", "none"))
    (request, response), *_ = merge_sources([read_source(old), read_source(new)]).values()
    assert (request.versions, response.versions) == ((0, 1), (0, 1))


def test_our_own_files_are_read_back_and_stay_as_they_are(tmp_path: Path) -> None:
    write_files(merge_sources([read_files(Path(DATA))]), tmp_path)
    written = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert len(written) > 100
    assert written == {name: read_data(name) for name in written}
    assert f"{HEADERS}.txt" in written


def test_a_folder_without_an_index_holds_nothing_yet(tmp_path: Path) -> None:
    assert read_files(tmp_path) == []


def test_jars_count_by_release_number_and_other_sources_as_given() -> None:
    jars = [Path(f"kafka-clients-{release}.jar") for release in ("2.10.0", "0.11.0.3", "2.9.1")]
    assert [release_name(jar) for jar in in_order_of_age(jars)] == ["0.11.0.3", "2.9.1", "2.10.0"]
    mixed = [Path("b"), Path("kafka-clients-1.0.0.jar"), Path("a")]
    assert in_order_of_age(mixed) == mixed


def test_a_file_that_is_no_jar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jar").write_bytes(b"not a zip")
    with pytest.raises(SchemaError, match=r"a\.jar: cannot be read: .*; give a jar"):
        read_source(tmp_path / "a.jar")


def test_a_folder_without_definitions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(SchemaError, match="no message definitions in it"):
        read_source(tmp_path)


def test_what_is_too_large_for_a_definition_is_passed_over(tmp_path: Path) -> None:
    big = definition("request", "0") + " " * (1 << 20)
    source = folder(tmp_path / "source", big, definition("response", "0"))
    assert [message.kind for message in read_source(source)] == ["response"]


def test_a_folder_whose_index_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index.txt").write_text("dear diary\n")
    with pytest.raises(SchemaError, match="not a line of an index: 'dear diary'"):
        read_files(tmp_path)


def test_a_damaged_jar_is_refused(tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("common/message/A.json", definition("request", "0") * 50)
    whole = bytearray(jar.read_bytes())
    whole[60:80] = bytes(20)
    jar.write_bytes(whole)
    with pytest.raises(SchemaError, match=r"a\.jar: cannot be read"):
        read_source(jar)
