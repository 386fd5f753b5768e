"""Where schemas come from: folders, registries, and the records of the topic ``_schemas``."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kwiresniff_values import source_of
from kwiresniff_values.captured import Captured
from kwiresniff_values.folder import Folder
from kwiresniff_values.limits import MAX_LEARNT_BYTES, MAX_SCHEMA_BYTES
from kwiresniff_values.problems import Unusable

Answers = dict[str, tuple[int, dict[str, str], bytes]]


def test_a_folder_has_schemas_by_id_by_subject_and_by_path(tmp_path: Path) -> None:
    """With those below it; what a .proto file imports is found by its path."""
    (tmp_path / "7.avsc").write_text('"string"')
    (tmp_path / "orders-value.json").write_text('{"$ref": "shop/town.json#/x"}')
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "town.json").write_text("{}")
    (tmp_path / "shop" / "pay.proto").write_text('import "shop/base.proto";\nimport "google/protobuf/any.proto";')
    (tmp_path / "shop" / "base.proto").write_text("")
    (tmp_path / "notes.txt").write_text("none")
    folder = Folder(str(tmp_path))
    seven, subject, proto = folder.by_id("id", "7"), folder.by_name("orders-value"), folder.by_name("pay.proto")
    assert seven is not None and (seven.kind, seven.text) == ("AVRO", '"string"')
    assert subject is not None and (subject.kind, subject.references) == ("JSON", ("shop/town.json",))
    assert proto is not None and (proto.kind, proto.references) == ("PROTOBUF", ("shop/base.proto",))
    assert folder.by_id("id", "8") is None and folder.by_name("notes") is None
    other = subject.referred("shop/town.json")
    assert other is not None and other.text == "{}"


def test_a_file_alone_is_a_source(tmp_path: Path) -> None:
    """A descriptor has bytes."""
    (tmp_path / "a.desc").write_bytes(b"\xff")
    found = Folder(str(tmp_path / "a.desc")).by_name("a")
    assert found is not None and found.text == b"\xff"
    for path, why in ((tmp_path / "a.txt", "no such file or folder"), (Path(__file__), "its name must end in")):
        with pytest.raises(Unusable, match=why):
            Folder(str(path))


def test_a_file_that_is_too_large_or_no_text_is_unusable(tmp_path: Path) -> None:
    """When it is asked for."""
    (tmp_path / "1.avsc").write_bytes(b" " * (MAX_SCHEMA_BYTES + 1))
    (tmp_path / "2.avsc").write_bytes(b"\xff")
    for number, why in (("1", "more than"), ("2", "no text in UTF-8")):
        with pytest.raises(Unusable, match=why):
            Folder(str(tmp_path)).by_id("id", number)


@contextmanager
def serving(answers: Answers) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server with these answers by path; the address, and what was asked for with which credentials."""
    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization")))
            code, headers, body = answers.get(self.path, (404, {}, b"{}"))
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            pause = float(headers.get("Drip", 0))
            with suppress(OSError):  # who asked has gone
                for piece in (bytes([byte]) for byte in body) if pause else (body,):
                    self.wfile.write(piece)
                    time.sleep(pause)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def said(value: Any) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def test_a_registry_is_asked_as_confluents_documentation_says() -> None:
    """By id, GUID and subject; references by subject and version."""
    reference = [{"name": "shop.C", "subject": "c", "version": 3}]
    answers: Answers = {
        "/schemas/ids/7": said({"schema": '"shop.C"', "references": reference}),
        "/subjects/c/versions/3": said({"schema": '"long"', "version": 3}),
        "/schemas/guids/ab-c": said({"schema": "{}", "schemaType": "JSON"}),
        "/subjects/orders-value/versions/latest": said({"schema": '"int"'}),
    }
    with serving(answers) as (address, asked):
        registry = source_of(f"http://ada:s%20cret@{address}/")
        seven = registry.by_id("id", "7")
        assert seven is not None and (seven.kind, seven.references) == ("AVRO", ("shop.C",))
        other = seven.referred("shop.C")
        assert other is not None and other.text == '"long"' and seven.referred("shop.D") is None
        guided, named = registry.by_id("guid", "ab-c"), registry.by_name("orders-value")
        assert guided is not None and guided.kind == "JSON" and named is not None and named.text == '"int"'
        assert registry.by_id("id", "8") is None and registry.by_id("version id", "8") is None
        assert {credentials for _, credentials in asked} == {"Basic " + base64.b64encode(b"ada:s cret").decode()}
        assert len(asked) == 5


def test_protobuf_is_asked_for_as_a_descriptor() -> None:
    """Which needs no compiler."""
    answers: Answers = {
        "/schemas/ids/7": said({"schema": "message A {}", "schemaType": "PROTOBUF"}),
        "/schemas/ids/7?format=serialized": said({"schema": "CgEx", "schemaType": "PROTOBUF"}),
    }
    with serving(answers) as (address, _):
        found = source_of(f"http://{address}").by_id("id", "7")
    assert found is not None and found.text == "CgEx"


def test_apicurios_own_api_is_known() -> None:
    """By its path; answers as Apicurio Registry 3.0.9 gives them."""
    order = {"version": "1", "artifactType": "AVRO", "globalId": 4, "contentId": 2, "artifactId": "orders-value"}
    customer = {"version": "1", "artifactType": "AVRO", "globalId": 1, "contentId": 1, "artifactId": "shop.Customer"}
    api = "/apis/registry/v3"
    answers: Answers = {
        f"{api}/search/versions?globalId=4": said({"count": 1, "versions": [order]}),
        f"{api}/search/versions?contentId=9": said({"count": 1, "versions": [{**order, "artifactType": "WSDL"}]}),
        f"{api}/ids/globalIds/4": (200, {}, b'"shop.Customer"'),
        f"{api}/ids/globalIds/4/references": said(
            [{"artifactId": "shop.Customer", "version": "1", "name": "shop.Customer"}]
        ),
        f"{api}/groups/default/artifacts/shop.Customer/versions/1": said(customer),
        f"{api}/groups/default/artifacts/shop.Customer/versions/branch=latest": said(customer),
        f"{api}/ids/globalIds/1": (200, {}, b'"int"'),
        f"{api}/ids/globalIds/1/references": said([]),
    }
    with serving(answers) as (address, _):
        registry = source_of(f"http://{address}{api}")
        found = registry.by_id("global id", "4")
        assert found is not None and (found.name, found.references) == ("orders-value version 1", ("shop.Customer",))
        other = found.referred("shop.Customer")
        assert other is not None and other.text == '"int"' and other == registry.by_name("shop.Customer")
        assert registry.by_id("id", "9") is None and registry.by_id("guid", "9") is None


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((500, {}, b""), "it answers 500"),
        ((401, {}, b""), "it answers 401"),
        ((200, {}, b"<html>"), "its answer is no JSON"),
        ((200, {}, b" " * (4 * MAX_SCHEMA_BYTES + 1)), "more than"),
        ((302, {"Location": "http://127.0.0.2:1/x"}, b""), "redirects to another host"),
    ],
)
def test_a_registry_that_fails_is_told_once_without_its_credentials(answer: Any, why: str) -> None:
    """And is not asked again."""
    with serving({"/schemas/ids/7": answer}) as (address, asked):
        registry = source_of(f"http://ada:secret@{address}")
        with pytest.raises(Unusable, match=why) as raised:
            registry.by_id("id", "7")
        assert "secret" not in str(raised.value) and "ada" not in str(raised.value)
        assert registry.by_id("id", "8") is None
        assert len(asked) == 1


def test_a_registry_that_is_not_there_is_told_once() -> None:
    """Nobody listens at port 1."""
    registry = source_of("http://ada:secret@127.0.0.1:1")
    with pytest.raises(Unusable, match=r"http://127\.0\.0\.1:1: .*refused") as raised:
        registry.by_id("id", "7")
    assert "secret" not in str(raised.value)
    assert registry.by_id("id", "7") is None
    for url in ("ftp://x", "http://", "http://ada:secret@[x", "http://ada:secret@x:y"):
        with pytest.raises(Unusable) as raised:
            source_of(url)
        assert "secret" not in str(raised.value)


def test_a_registry_that_answers_drop_by_drop_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte would be in time."""
    monkeypatch.setattr("kwiresniff_values.schema_server.REGISTRY_TIMEOUT_S", 0.2)
    with serving({"/schemas/ids/7": (200, {"Drip": "0.05"}, b"x" * 40)}) as (address, _):
        begun = time.monotonic()
        with pytest.raises(Unusable, match="timed out"):
            source_of(f"http://{address}").by_id("id", "7")
        assert time.monotonic() - begun < 1.5


def learnt(captured: Captured, subject: str, version: int, number: int, schema: str = '"int"', **more: Any) -> None:
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    value = {"subject": subject, "version": version, "id": number, "schema": schema, **more}
    captured.learn(json.dumps(key).encode(), json.dumps(value).encode())


def test_a_capture_teaches_schemas() -> None:
    """By id, GUID and newest version, with their references; deleted ones too, since older records have their ids."""
    captured = Captured()
    learnt(captured, "c", 1, 1)
    learnt(captured, "o", 1, 2, references=[{"name": "C", "subject": "c", "version": 1}], deleted=True)
    learnt(captured, "o", 2, 3, "{}", schemaType="JSON", guid="AB-C")
    first, guided, newest = captured.by_id("id", "2"), captured.by_id("guid", "ab-c"), captured.by_name("o")
    assert first is not None and first.referred("C") == captured.by_id("id", "1")
    assert guided is not None and guided == newest and guided.kind == "JSON"
    assert captured.by_id("id", "4") is None and captured.by_name("x") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b""),
        (b"{", b"{}"),
        (b'{"keytype": "CONFIG"}', b'{"compatibilityLevel": "NONE"}'),
        (b'{"keytype": "SCHEMA"}', b"[1]"),
        (b'{"keytype": "SCHEMA"}', b'{"subject": 1, "version": "x", "id": null, "schema": {}}'),
        (b'{"keytype": "SCHEMA"}', b'{"subject": "a", "version": 1, "id": 1, "schema": "x", "schemaType": "WSDL"}'),
        (b'{"keytype": "SCHEMA"}', b'{"subject": "a", "version": 1, "id": 1, "schema": "x", "references": 5}'),
    ],
)
def test_other_records_teach_nothing(key: bytes, value: bytes) -> None:
    """Whatever is in them."""
    captured = Captured()
    captured.learn(key, value)
    assert captured.by_id("id", "1") is None and captured.by_name("a") is None


def test_the_schema_of_the_cluster_that_is_read_counts() -> None:
    """An id means another schema in another registry. The cluster's own one goes first; where it has none, the only one
    that there is; where others have different ones, that is told once."""
    scopes = {1: 1, 2: 2, 3: 3}
    captured = Captured()
    for node, text in ((1, "a"), (2, "b")):
        captured.enter(node, scopes.__getitem__)
        learnt(captured, "s", node, 7, text)
        learnt(captured, "u", 1, 8, "same")
        learnt(captured, "r", 1, 9, text, references=[{"name": "U", "subject": "s", "version": node}])
    learnt(captured, "only", 1, 20, "c")

    def text_of(node: int, by: str, id: str) -> Any:
        captured.enter(node, scopes.__getitem__)
        found = captured.by_name(id) if by == "name" else captured.by_id(by, id)
        return None if found is None else found.text

    assert (
        [text_of(node, "id", "7") for node in (1, 2)] == [text_of(node, "name", "s") for node in (1, 2)] == ["a", "b"]
    )
    assert [text_of(node, "id", "20") for node in (1, 2, 3)] == ["c"] * 3
    assert text_of(3, "id", "8") == "same"
    with pytest.raises(Unusable, match="2 clusters each have a schema id 7, and that of these records has none"):
        text_of(3, "id", "7")
    assert text_of(3, "id", "7") is None
    scopes[3] = 2  # which is known later
    assert text_of(3, "id", "7") == "b"
    referring = captured.by_id("id", "9")
    captured.enter(1, scopes.__getitem__)
    referred = referring.referred("U") if referring is not None else None
    assert referred is not None and referred.text == "b"


def test_what_a_capture_teaches_is_bounded() -> None:
    """The oldest are forgotten; the same one seen again takes no more room."""
    captured = Captured()
    size = MAX_LEARNT_BYTES // 4
    for number in (1, 1, 2, 3, 4, 4):
        learnt(captured, "s", number, number, " " * size)
    assert all(captured.by_id("id", str(number)) for number in (1, 2, 3, 4))
    learnt(captured, "s", 5, 5, " " * size)
    assert captured.by_id("id", "1") is None and captured.by_id("id", "5") is not None
