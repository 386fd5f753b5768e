from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest

from kwiresniff import schema
from kwiresniff.model import Dissection, Node, Problem
from kwiresniff.render.line_wrapping import cells
from kwiresniff.render.tree import TreeWriter
from tests.support import annotated_samples
from tests.support.annotated_samples import Sample, sample

Golden = Callable[[str, str], None]


def rendered(
    some: list[Sample], width: int | None = 80, color: bool = False, verbosity: int = 0, **more: object
) -> str:
    out = io.StringIO()
    writer = TreeWriter(out, width, color, verbosity, **more)  # type: ignore[arg-type]
    for one in some:
        writer.write(*one)
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 160, None])
@pytest.mark.parametrize("verbosity", [0, 1, 2])
def test_the_trees_are_exactly_these(golden: Golden, width: int | None, verbosity: int) -> None:
    text = rendered(annotated_samples.all_samples(), width, verbosity=verbosity)
    golden(f"tree-{width or 'pipe'}-v{verbosity}.txt", text)


def test_the_colours_are_exactly_these(golden: Golden) -> None:
    golden("tree-80-color.txt", rendered(annotated_samples.all_samples(), 80, color=True).replace("\x1b", "␛"))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("verbosity", [0, 1, 2])
def test_no_line_is_wider_than_the_terminal(width: int, verbosity: int) -> None:
    lines = rendered(annotated_samples.all_samples(), width, verbosity=verbosity).splitlines()
    assert max(map(cells, lines)) <= width


def test_in_a_pipe_nothing_is_folded_and_there_are_no_colours() -> None:
    text = rendered([annotated_samples.produce()], None)
    assert "\x1b" not in text
    assert re.search(r"orders-tx-1\n", text)
    assert re.search(r"customer-17 → \{.*\}  headers trace=00f067aa0ba902b7\n", text)


@pytest.mark.parametrize("color", [False, True])
def test_what_a_hostile_peer_sends_never_reaches_the_terminal(color: bool) -> None:
    text = rendered([annotated_samples.hostile()], 80, color=color, verbosity=2)
    ours = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert ours.replace("\n", "").isprintable()
    assert ("\x1b" in text) == color
    assert "\\x1b]8;;http" in text


def test_nothing_is_said_of_the_broker_while_nobody_knows_its_share_of_a_long_poll() -> None:
    """All of a first long poll counts as held, which does not mean that the broker needed no time."""
    sample = annotated_samples.fetch()
    exchange = sample[0]
    assert "held 463 ms broker about 1.80 ms" in rendered([sample], None)
    exchange.held += exchange.broker_ns or 0
    assert re.search(r"held 465 ms  ok", rendered([sample], None))


def test_an_error_code_is_named_and_red() -> None:
    text = rendered([annotated_samples.produce()], None, color=True)
    assert "\x1b[1;31merror_code 6 NOT_LEADER_OR_FOLLOWER (retriable)\x1b[0m" in text


def test_a_problem_stands_where_it_is_and_only_there() -> None:
    text = rendered([annotated_samples.hostile()], None)
    assert text.count("include_cluster_authorized_operations null ! the message ends 1 bytes too early") == 1


def test_a_problem_without_a_node_is_listed_below_the_message() -> None:
    made, request, response = annotated_samples.join_group()
    assert request is not None
    dissection = Dissection(request.root, request.end, [Problem("trailing_bytes", "4 bytes follow the end", 129)])
    text = rendered([(made, dissection, response)], None)
    assert "! 4 bytes follow the end (byte 129)\n" in text


def test_what_could_not_be_decoded_is_counted_but_never_shown() -> None:
    made, dissection, _ = annotated_samples.unanswered()
    assert dissection is not None
    dissection.end -= 17
    text = rendered([(made, dissection, None)], None, verbosity=2)
    assert "… 17 bytes not decoded\n" in text
    assert annotated_samples.MEMBER[-16:].encode().hex(" ")[:20] not in text.split("… 17 bytes")[1]


def test_a_long_array_is_shortened_and_what_is_wrong_in_it_is_still_shown() -> None:
    partitions = [
        {"partition_index": index, "error_code": 6 if index == 77 else 0, "committed_offset": 5, "metadata": ""}
        for index in range(100)
    ]
    asked = {"group_id": "g", "topics": []}
    one = sample(9, 1, asked, {"topics": [{"name": "orders", "partitions": partitions}]})
    text = rendered([one], None)
    assert "partitions[11]" in text
    assert "partitions[12]" not in text
    assert re.search(r"partitions\[77\]  partition_index 77 .* error_code 6 NOT_LEADER_OR_FOLLOWER", text)
    assert "partitions … 87 more of 100, all without errors" in text
    assert "partitions[99]" in rendered([one], None, verbosity=1)


def test_a_long_value_is_cut_with_a_told_count_and_whole_with_v() -> None:
    one = annotated_samples.join_group(b"x" * 1354, "connect-like")
    assert "x" * 120 + "… 1,234 more bytes" in rendered([one], None)
    assert "x" * 1354 + "\n" in rendered([one], None, verbosity=1)


def test_a_tagged_field_that_is_not_on_the_wire_is_shown_only_with_v() -> None:
    one = sample(18, 3, {"client_software_name": "x", "client_software_version": "1"},
                 {"error_code": 0, "api_keys": [], "throttle_time_ms": 0})  # fmt: skip
    assert "finalized_features_epoch" not in rendered([one], None)
    assert "finalized_features_epoch (tag 1)" in rendered([one], None, verbosity=1)


def test_the_versions_of_all_apis_stand_on_one_row() -> None:
    keys = [{"api_key": key, "min_version": 0, "max_version": key} for key in range(1, 78)]
    one = sample(18, 0, {}, {"error_code": 0, "api_keys": keys})
    names = {api.key: api.name for api in schema.apis()}
    assert f"api_keys 77  {names[1]} 0-1  {names[2]} 0-2  " in rendered([one], None)
    assert f"{names[77]} 0-77\n" in rendered([one], None)
    assert f"api_keys[76]  api_key 77 ({names[77]})" in rendered([one], None, verbosity=1)


def test_endless_nesting_ends() -> None:
    made, request, response = annotated_samples.unanswered()
    assert request is not None
    node = Node("leaf", "INT8", 0, 1, 1)
    for depth in range(900):
        node = Node(f"level{depth}", "STRUCT", 40, 1, children=[node])
    request.root.children[1].children.append(node)
    assert "nested too deeply" in rendered([(made, request, response)], None)


def test_files_are_named_when_there_are_several() -> None:
    made, request, response = annotated_samples.unanswered()
    assert made.request is not None
    made.request.first_packet = made.request.last_packet = (1 << 40) + 9
    assert "packet 9 of b\\x1b.pcap" in rendered([(made, request, response)], None, files=["a.pcap", "b\x1b.pcap"])


def test_an_ascii_stream_gets_ascii() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    writer = TreeWriter(out, 80, False)
    for one in annotated_samples.all_samples():
        writer.write(*one)
    out.flush()
    assert b"|- request" in raw.getvalue()
    assert b"->" in raw.getvalue()


def test_plugins_notes_stand_below_the_exchange() -> None:
    made, request, response = annotated_samples.unanswered()
    made.notes = [{"plugin": "slow\x1b", "advice": "raise the timeout"}]
    assert '└─ slow\\x1b  advice "raise the timeout"\n' in rendered([(made, request, response)], None)
