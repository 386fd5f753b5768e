"""Trees of whole exchanges are the same from values as from nodes, secrets withheld."""

from __future__ import annotations

import io
import random
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from kwiresniff import schema
from kwiresniff.base.needs import Needs
from kwiresniff.capture import open_captures
from kwiresniff.model import Connection, Dissection, Exchange
from kwiresniff.render.tree import TreeWriter
from kwiresniff.render.tree_row import Row
from kwiresniff.session import Analyzer
from kwiresniff.session.annotation import dissect_message
from tests.support.conversation import Wire, exchange_frames, heartbeat, heartbeat_response, request, response
from tests.support.encoding import encoder
from tests.support.events import analyze_with
from tests.support.random_bodies import drawable_body
from tests.support.sample import mostly_slow

CAPTURES = sorted(
    path for path in (Path(__file__).parents[2] / "captures").iterdir() if path.suffix in (".pcap", ".pcapng")
)
HEARTBEAT, API_VERSIONS, CREATE_TOPICS, DESCRIBE_CONFIGS = 12, 18, 19, 32


def rows(
    tree: TreeWriter, exchange: Exchange, which: Any, analyzer: Analyzer, show_secrets: bool = False
) -> Dissection | list[Row] | None:
    """What ``read`` draws of a message: the rows of its values where there are any, or else its nodes."""
    found = tree.rows(exchange, which)
    if found is not None:
        return found
    return dissect_message(exchange, which, analyzer.topics, show_secrets=show_secrets, folded=True)


def drawn_twice(wire: Wire, show_secrets: bool = False) -> tuple[list[bool], str, str]:
    """Of the last exchange: whether request and response are drawn from values; its tree with whatever is; and its tree
    from nodes alone.
    """
    direct = Analyzer(Needs(shown=True), show_secrets=show_secrets)
    careful = Analyzer(show_secrets=show_secrets)
    found, other = (
        [event for event in analyze_with(one, wire.segments) if isinstance(event, Exchange)][-1]
        for one in (direct, careful)
    )
    tree = TreeWriter(io.StringIO(), None, False, topic_name=direct.topics.name)
    parts = [rows(tree, found, which, direct, show_secrets) for which in ("request", "response")]
    nodes = [
        dissect_message(other, which, careful.topics, show_secrets=show_secrets) for which in ("request", "response")
    ]
    drawn = tree.text(found, *parts).decode()
    is_valued = [isinstance(part, list) for part in parts]
    return is_valued, drawn, TreeWriter(io.StringIO(), None, False).text(other, *nodes).decode()


def described(**said: Any) -> Wire:
    """DescribeConfigs v1 of one topic with one config, of which the broker says this."""
    config = {"name": "cleanup.policy", "value": "hunter2", "read_only": False, "config_source": 1,
              "is_sensitive": False, "synonyms": [], **said}  # fmt: skip
    asked = {"resources": [{"resource_type": 2, "resource_name": "t", "configuration_keys": None}],
             "include_synonyms": True}  # fmt: skip
    results = [{"error_code": 0, "error_message": None, "resource_type": 2, "resource_name": "t", "configs": [config]}]
    answered = {"throttle_time_ms": 0, "results": results}
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.up(request(DESCRIBE_CONFIGS, 1, 2, encoder(DESCRIBE_CONFIGS, 1, "request")(asked)))
    return wire.down(response(2, encoder(DESCRIBE_CONFIGS, 1, "response")(answered)))


@pytest.mark.parametrize(
    ("said", "shown", "withheld"),
    [
        ({}, True, False),
        ({"is_sensitive": True, "value": None}, False, False),
        ({"is_sensitive": True}, False, True),
        ({"name": "ssl.keystore.password"}, False, True),
        ({"synonyms": [{"name": "b.secret", "value": "hunter2", "source": 5}]}, True, True),
        ({"name": "a.token", "value": None, "synonyms": [{"name": "b", "value": "hunter2", "source": 5}]}, False, True),
    ],
)
def test_configs_have_rows_in_which_secrets_are_withheld(said: dict[str, Any], shown: bool, withheld: bool) -> None:
    """The tree is that of the nodes: the values of secrets are replaced by their size, those of others are not."""
    is_valued, drawn, nodes = drawn_twice(described(**said))
    assert is_valued == [True, True]
    assert drawn == nodes
    assert ("hunter2" in drawn, "(withheld, size_bytes 7)" in drawn) == (shown, withheld)


#: Messages of which fields are withheld, and configs of which some are secrets.
WITH_SECRETS: list[tuple[int, Any]] = [
    (19, "request"), (19, "response"), (32, "response"), (33, "request"), (36, "request"), (36, "response"),
    (38, "response"), (39, "request"), (40, "request"), (41, "response"), (44, "request"), (51, "request"),
    (88, "request"), (89, "response"),
]  # fmt: skip
SECRET_NAMES = ("ssl.keystore.password", "a.token")
NAMES = (*SECRET_NAMES, "retention.ms", "b")


def with_configs(value: Any, rng: random.Random) -> Any:
    """A body whose strings are names of configs; those of secrets are called sensitive."""
    if isinstance(value, dict):
        configs = {name: with_configs(member, rng) for name, member in value.items()}
        if "is_sensitive" in configs:
            configs["is_sensitive"] = configs["name"] in SECRET_NAMES
        return configs
    if isinstance(value, list):
        return [with_configs(member, rng) for member in value]
    return rng.choice(NAMES) if isinstance(value, str) and len(value) < 20 else value


@pytest.mark.parametrize(("api_key", "direction"), WITH_SECRETS)
@pytest.mark.parametrize("show_secrets", [False, True])
def test_what_is_withheld_in_rows_is_what_is_withheld_in_nodes(
    api_key: int, direction: Any, show_secrets: bool
) -> None:
    """Random bodies of each version; only what is sound in every way has rows."""
    rng = random.Random(f"{api_key} {direction}")
    (api,) = (api for api in schema.apis() if api.key == api_key)
    first, last = getattr(api, f"{direction}_versions")
    written = 0
    for version in [*range(first, last + 1)] * 8:
        frames = []
        for which in ("request", "response"):
            definition = schema.message(api_key, version, which)
            body = with_configs(drawable_body(definition, rng), rng)
            frames.append(encoder(api_key, version, which)(body))
        wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
        asked, answered = exchange_frames(api_key, version, 2, frames[0], frames[1])
        wire.up(asked).down(answered)
        is_valued, drawn, nodes = drawn_twice(wire, show_secrets)
        assert drawn == nodes
        written += is_valued[direction == "response"]
    assert written > 4 * (last + 1 - first)


def created(value: str, *, sensitive: bool, cut: int = 0) -> Wire:
    """CreateTopics v5 of a topic with a config, of which the broker says whether it is sensitive; the request without
    ``cut`` bytes of its end.
    """
    config = {"name": "plugin.ink", "value": value}
    asked = {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1, "assignments": [],
                         "configs": [config]}], "timeout_ms": 1, "validate_only": False}  # fmt: skip
    told = {"name": "plugin.ink", "value": None, "read_only": False, "config_source": 1, "is_sensitive": sensitive}
    answered = {"throttle_time_ms": 0, "topics": [
        {"name": "t", "error_code": 0, "error_message": None, "num_partitions": 1, "replication_factor": 1,
         "configs": [told], "topic_config_error_code": 0}]}  # fmt: skip
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    body = encoder(CREATE_TOPICS, 5, "request")(asked)
    wire.up(request(CREATE_TOPICS, 5, 2, body[: len(body) - cut], "c", b"\0"))
    return wire.down(response(2, encoder(CREATE_TOPICS, 5, "response")(answered), b"\0"))


def test_a_request_that_breaks_off_is_concealed_once_more_without_an_error() -> None:
    """Its names are withheld by then."""
    _, drawn, nodes = drawn_twice(created("hunter2", sensitive=True, cut=1))
    assert drawn == nodes and "hunter2" not in drawn


@pytest.mark.parametrize("length", [-1, -2, -32731])
def test_a_client_id_that_cannot_be_is_shown_where_it_stands(length: int) -> None:
    """A client id is a NULLABLE_STRING of the protocol guide, of which -1 alone stands for null."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.up(pack(">ihhih", 10, API_VERSIONS, 2, 2, length))
    # No error, one API with the versions 0 to 3, no throttle time.
    _, drawn, nodes = drawn_twice(wire.down(response(2, pack(">hihhhi", 0, 1, 18, 0, 3, 0))))
    assert drawn == nodes and (f"client_id has length {length}" in drawn) == (length < -1)


@pytest.mark.parametrize("length", range(4, 12))
def test_a_response_that_ends_inside_its_header_shows_how_far_that_came(length: int) -> None:
    """Heartbeat v4, whose responses begin with a header v1 (KIP-482): the correlation id, 4 bytes, and tagged fields,
    one byte where there are none. The time for which the client was throttled, the error code and no tagged fields
    follow.
    """
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.up(request(HEARTBEAT, 4, 2, b"\6group" + pack(">i", 5) + b"\7member\0\0", tags=b"\0"))
    answer = pack(">ibihb", 2, 0, 0, 0, 0)[:length]
    _, drawn, nodes = drawn_twice(wire.down(pack(">i", len(answer)) + answer))
    assert drawn == nodes and ("─ header\n" in drawn) == (length < 5)


@pytest.mark.parametrize("sensitive", [False, True])
def test_what_a_response_calls_sensitive_is_withheld_in_its_request(sensitive: bool) -> None:
    """A request to create a topic is read before the broker says of which configs it makes a secret."""
    wire = created("hunter2", sensitive=sensitive)
    _, drawn, nodes = drawn_twice(wire)
    assert drawn == nodes and ("hunter2" in drawn) != sensitive
    (body,) = (one.request.body for one in analyze_with(Analyzer(), wire.segments)
               if isinstance(one, Exchange) and one.request is not None and one.api_key == CREATE_TOPICS)  # fmt: skip
    assert ("hunter2" in str(body)) != sensitive


@pytest.mark.parametrize("capture", mostly_slow(CAPTURES), ids=lambda path: path.name)
def test_captures_are_drawn_the_same_from_values_and_from_nodes(capture: Path) -> None:
    """Every exchange of every recording, in a pipe and in a terminal."""
    for width, color in ((None, False), (80, True)):
        direct, careful = Analyzer(Needs(shown=True)), Analyzer()
        trees = [TreeWriter(io.StringIO(), width, color, topic_name=direct.topics.name) for _ in range(2)]
        events = analyze_with(direct, iter(open_captures([str(capture)])))
        for event, other in zip(events, analyze_with(careful, iter(open_captures([str(capture)]))), strict=True):
            if isinstance(event, Exchange):
                assert isinstance(other, Exchange)
                asked, answered = (dissect_message(other, which, careful.topics) for which in ("request", "response"))
                parts = [rows(trees[0], event, which, direct) for which in ("request", "response")]
                assert trees[0].text(event, *parts) == trees[1].text(other, asked, answered)
            elif isinstance(event, Connection):
                assert isinstance(other, Connection) and event.exchanges == other.exchanges
