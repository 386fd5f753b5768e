"""Protobuf: messages that the library writes are read by descriptors and .proto files."""

from __future__ import annotations

import base64
import importlib.util
import shutil

import pytest

pytest.importorskip("google.protobuf")

from google.protobuf import descriptor_pb2

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values.limits import MAX_DEPTH, MAX_SCHEMA_BYTES, MAX_VALUES
from kwiresniff_values.problems import Misfit, Unusable
from kwiresniff_values.protobuf import Messages
from tests.values.schemas import order_file, schema

NO_PROTOC = importlib.util.find_spec("grpc_tools") is None and shutil.which("protoc") is None
needs_protoc = pytest.mark.skipif(NO_PROTOC, reason="needs protoc or grpcio-tools")


def serialized() -> str:
    return base64.b64encode(order_file().SerializeToString()).decode()


def nested(levels: int) -> bytes:
    """An order in an order in an order."""
    data = b""
    for _ in range(levels):
        data = b"\x12" + varint(len(data)) + data
    return data


def varint(number: int) -> bytes:
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


@pytest.mark.parametrize(
    "text", [serialized(), descriptor_pb2.FileDescriptorSet(file=[order_file()]).SerializeToString()]
)
def test_messages_are_read_by_a_descriptor(text: str | bytes) -> None:
    """In the form that a registry gives, and in a set of a file; 64 bits become text as in Protobuf's own JSON."""
    messages = Messages(schema("PROTOBUF", text))
    assert messages.reader((0,))(b"\x08\x05\x1a\x03\x0a\x01x") == {"id": "5", "lines": [{"name": "x"}]}
    assert messages.reader((0, 0))(b"\x0a\x01y") == {"name": "y"}
    assert messages.reader(())(b"\x08\x06") == {"id": "6"}
    assert messages.reader((1,))(b"") == {}


def test_a_message_is_found_by_its_name() -> None:
    """Where the schema names one."""
    messages = Messages(schema("PROTOBUF", serialized(), message="shop.Order.Line"))
    assert messages.reader(())(b"\x0a\x01y") == {"name": "y"}
    with pytest.raises(Unusable, match=r"no message shop\.Nothing"):
        Messages(schema("PROTOBUF", serialized(), message="shop.Nothing")).reader(())


def test_bytes_of_another_message_do_not_fit() -> None:
    """Damaged, not of UTF-8, or of an index that there is not."""
    messages = Messages(schema("PROTOBUF", serialized()))
    for data in (b"\xff", b"\x08", b"\x1a\x03\x0a\x01\xff"):
        with pytest.raises(Misfit):
            messages.reader((0,))(data)
    with pytest.raises(Misfit, match=r"no message 2"):
        messages.reader((2,))


def test_levels_and_values_are_bounded() -> None:
    """The library's own bound of levels is beyond that."""
    read = Messages(schema("PROTOBUF", serialized())).reader((0,))
    assert read(nested(3)) == {"next": {"next": {"next": {}}}}
    with pytest.raises(TooMuch, match=f"{MAX_DEPTH} levels"):
        read(nested(MAX_DEPTH + 5))
    with pytest.raises(Misfit):
        read(nested(5_000))
    with pytest.raises(TooMuch, match=f"{MAX_VALUES} values"):
        read(b"\x1a\x00" * (MAX_VALUES + 1))


@pytest.mark.parametrize("text", [b"\xff\xff", b"", "%%%", base64.b64encode(b"\xff\xff").decode()])
def test_what_is_no_descriptor_is_unusable(text: str | bytes) -> None:
    """And is no crash."""
    with pytest.raises(Unusable):
        Messages(schema("PROTOBUF", text))


def test_a_descriptor_that_contradicts_itself_is_unusable() -> None:
    """It refers to a type that is nowhere."""
    file = order_file()
    file.message_type[0].field[1].type_name = ".shop.Nowhere"
    with pytest.raises(Unusable):
        Messages(schema("PROTOBUF", base64.b64encode(file.SerializeToString()).decode()))
    with pytest.raises(Unusable, match=f"more than {MAX_SCHEMA_BYTES} bytes"):
        Messages(schema("PROTOBUF", b"\0" * (MAX_SCHEMA_BYTES + 1)))


@needs_protoc
def test_a_proto_file_is_compiled_with_what_it_imports() -> None:
    """From its references, and from what comes with protoc."""
    other = schema("PROTOBUF", 'syntax = "proto3"; package base; message Money { int32 cents = 1; }')
    text = (
        'syntax = "proto3"; import "base/money.proto"; import "google/protobuf/timestamp.proto";'
        "message Bill { base.Money sum = 1; google.protobuf.Timestamp at = 2; }"
    )
    messages = Messages(schema("PROTOBUF", text, {"base/money.proto": other}))
    assert messages.reader(())(b"\x0a\x02\x08\x07\x12\x02\x08\x01") == {
        "sum": {"cents": 7},
        "at": "1970-01-01T00:00:01Z",
    }


@needs_protoc
@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", ".hidden/x.proto"])
def test_an_import_does_not_lead_out_of_the_folder(path: str) -> None:
    """Whether the schema says that it refers to the path, or imports it only."""
    text = f'syntax = "proto3"; import "{path}"; message A {{}}'
    with pytest.raises(Unusable, match="is no path of a file"):
        Messages(schema("PROTOBUF", text, {path: schema("PROTOBUF", 'syntax = "proto3"; message B {}')}))
    with pytest.raises(Unusable, match="does not compile"):
        Messages(schema("PROTOBUF", text))
