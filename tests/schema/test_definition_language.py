"""The language of the definition files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwiresniff.errors import SchemaError
from kwiresniff.schema.apis import DATA
from kwiresniff.schema.definition import NO_VERSIONS, Field, Message, Versions
from kwiresniff.schema.definition_language import parse, print_messages

TABLES = {"index", "enums", "errors", "password_configs", "releases"}
FILES = sorted(path for path in Path(DATA).glob("*.txt") if path.stem not in TABLES)

EVERYTHING = """\
api 99 Sample
was Example Specimen
listeners broker controller

request 0-3 flexible 2+
  topics []struct null 1+
    name string entity topicName key was topic
    ids []int32 1-2
  client_id string null = null flexible none
  limit int64 3 = -1
  state struct 2+ tag 4
    epoch int32 = 7

response 0-3 flexible 2+
  error_code int16
"""


def test_one_message_of_an_api_is_read_as_with_the_other() -> None:
    """The comment and the empty line inside a message end nothing."""
    text = EVERYTHING.replace("  client_id", "# a comment\n\n  client_id")
    request, response = parse(text)
    assert parse(text, kind="request") == (request,)
    assert parse(text, kind="response") == (response,)


def test_each_side_of_a_file_is_read_as_with_the_other() -> None:
    """Of every definition file there is."""
    for path in FILES:
        text = path.read_text("utf-8")
        both = parse(text)
        for kind, other in (("request", "response"), ("response", "request")):
            assert parse(text, kind=kind) == tuple(message for message in both if message.kind != other), path.name


def test_what_is_wrong_with_the_other_message_is_not_told() -> None:
    broken = EVERYTHING.replace("error_code int16", "error_code int17")
    assert parse(broken, kind="request") == parse(EVERYTHING)[:1]
    with pytest.raises(SchemaError, match=":15: unknown type int17"):
        parse(broken, kind="response")


def test_every_attribute_is_read() -> None:
    request, response = parse(EVERYTHING)
    all_versions, from_two = Versions(0, 3), Versions(2, 3)
    assert request == Message(
        name="Sample",
        kind="request",
        versions=all_versions,
        flexible=from_two,
        api_key=99,
        listeners=("broker", "controller"),
        aliases=("Example", "Specimen"),
        fields=(
            Field(
                name="topics",
                type="struct",
                array=True,
                versions=all_versions,
                nullable=Versions(1, 3),
                fields=(
                    Field("name", "string", all_versions, entity="topicName", map_key=True, aliases=("topic",)),
                    Field("ids", "int32", Versions(1, 2), array=True),
                ),
            ),
            Field(
                "client_id", "string", all_versions, nullable=all_versions, explicit_default=True, flexible=NO_VERSIONS
            ),
            Field("limit", "int64", Versions(3, 3), default=-1, explicit_default=True),
            Field(
                name="state",
                type="struct",
                versions=from_two,
                tag=4,
                tagged=from_two,
                fields=(Field("epoch", "int32", from_two, default=7, explicit_default=True),),
            ),
        ),
    )
    assert (response.name, response.kind, response.api_key, response.listeners) == ("Sample", "response", 99, ())


def test_a_definition_file_is_what_printing_it_gives() -> None:
    """Every one, to its last space."""
    assert len(FILES) > 200
    for path in FILES:
        text = path.read_text("utf-8")
        assert print_messages(parse(text)) == text, path.name


def test_printing_gives_back_what_was_read() -> None:
    assert parse(print_messages(parse(EVERYTHING))) == parse(EVERYTHING)


def test_comments_and_empty_lines_say_nothing() -> None:
    assert parse("# a word\n\ndata Nothing 0\n  # another\n") == (
        Message("Nothing", "data", Versions(0, 0), NO_VERSIONS, ()),
    )


def test_headers_and_data_need_no_api() -> None:
    header, data = parse("header request 1-2 flexible 2+\n  correlation_id int32\n\ndata EndTxnMarker 0\n")
    assert (header.kind, header.name, header.flexible) == ("header", "request", Versions(2, 2))
    assert (data.kind, data.name, data.api_key) == ("data", "EndTxnMarker", -1)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("  name text", "unknown type text"),
        ("  name", "ends too early"),
        ("  name string 1-", "invalid literal"),
        ("  name string colour blue", "unknown attribute colour"),
        ("  name string tag", "ends too early"),
        ("      name string", "indented too far"),
        ("nonsense", "expected api, was,"),
        ("response 0", "expected api, was,"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(line: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=rf"^sample\.txt:2: .*{complaint}"):
        parse(f"data Sample 0\n{line}\n", "sample.txt")


def test_structures_nested_without_end_are_refused() -> None:
    lines = ["data Deep 0", *(f"{'  ' * depth}a struct" for depth in range(1, 100))]
    with pytest.raises(SchemaError, match="indented too far"):
        parse("\n".join(lines))


def test_a_record_of_an_internal_topic_says_its_role_and_number() -> None:
    text = "data TopicRecord 0 flexible 0+ record metadata 2\n  name string\n"
    (message,) = parse(text)
    assert message.record == ("metadata", 2)
    assert print_messages((message,)) == text


@pytest.mark.parametrize(
    "words", ["record", "record metadata", "record metadata two", "record nothing 2", "metadata 2"]
)
def test_a_record_that_is_none_is_refused(words: str) -> None:
    with pytest.raises(SchemaError, match=r"data\.txt:1"):
        parse(f"data TopicRecord 0 {words}\n", "data.txt")
