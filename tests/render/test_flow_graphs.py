"""Flows in the languages of Graphviz and Mermaid: what they are made of, whatever came over the wire."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from kwiresniff.analysis.flow_picture import MAX_BOXES, MAX_EDGES, picture_of
from kwiresniff.base.address_names import Name
from kwiresniff.render.flow_graphs import COLORS, graphviz, mermaid
from kwiresniff.results.flows import Flow
from tests.support.flows import made_flow
from tests.support.harmful_text import UNSAFE

#: What would end a label, begin another statement, a directive, an entity, HTML or a link, or steer a terminal.
HOSTILE = [
    'a"]; evil [label="x',
    'x"]\n  click c0 "javascript:alert(1)"',
    "%%{init: {'theme':'dark'}}%%",
    "<script>alert(1)</script>",
    "&quot;&lt;b&gt;",
    "#quot;#35;",
    "back\\slash\\",
    "\\N\\G\\l",
    "`**markdown**`",
    "style:#a;b",
    "\x1b[31mred\u202e",
    "end",
    "}",
    "subgraph",
]
#: The few forms of statements that are made; labels are matched as the languages' own lexers do.
_DOT = r'"(?:[^"\\]|\\.)*"'
DOT_LINE = re.compile(
    rf"digraph flows \{{|\}}|  (?:graph|node|edge) \[[^\]\"]*(?:{_DOT})?[^\]\"]*\];"
    rf"|  (?:[ct]\d+|left_out) \[shape=\w+, label={_DOT}\];"
    rf"|  [ct]\d+ -> [ct]\d+ \[label={_DOT}, penwidth=\d\.\d, color=\"#[0-9a-f]{{6}}\"\];"
)
_MERMAID = r'"(?:[\w .,/()*+=@…-]|<br/>|#\d+;)*"'
MERMAID_LINE = re.compile(
    rf"flowchart LR|  c\d+\[{_MERMAID}\]|  t\d+\[\({_MERMAID}\)\]|  left_out\[{_MERMAID}\]"
    rf"|  [ct]\d+ -->\|{_MERMAID}\| [ct]\d+|  linkStyle [\d,]+ stroke:#[0-9a-f]{{6}},stroke-width:\dpx"
)


def hostile_flows() -> list[Flow]:
    return [
        made_flow(text, text, role=role, groups=(text,) * 5, zone=text, address="10.0.0.5", errors=1)
        for text in HOSTILE
        for role in ("producer", "consumer", "group")
    ]


def test_arrows_go_as_records_do() -> None:
    """From the producer to the topic, from there to the consumer; one that only commits has no records."""
    picture = picture_of([
        made_flow("shop", size_bytes=1_024),
        made_flow("till", role="consumer", groups=("g",), lag=3, size_bytes=256),
        made_flow(None, role="group", groups=("old",), address="", lag=9, size_bytes=0),
    ])  # fmt: skip
    lines = list(graphviz(picture))
    assert lines[4:] == [
        '  c0 [shape=box, label="shop\\n10.0.0.5"];',
        '  c1 [shape=box, label="till\\n10.0.0.5"];',
        '  c2 [shape=box, label="group old"];',
        '  t0 [shape=cylinder, label="orders"];',
        '  c0 -> t0 [label="10 records, 1.00 KB", penwidth=8.0, color="#2c7fb8"];',
        '  t0 -> c1 [label="group g\\n10 records, 256 B\\nlag 3", penwidth=4.5, color="#fe9929"];',
        '  t0 -> c2 [label="has committed\\nlag 9", penwidth=1.0, color="#fe9929"];',
        "}",
    ]
    assert list(mermaid(picture))[5:] == [
        '  c0 -->|"10 records, 1.00 KB"| t0',
        '  t0 -->|"group g<br/>10 records, 256 B<br/>lag 3"| c1',
        '  t0 -->|"has committed<br/>lag 9"| c2',
        "  linkStyle 0 stroke:#2c7fb8,stroke-width:8px",
        "  linkStyle 1 stroke:#fe9929,stroke-width:4px",
        "  linkStyle 2 stroke:#fe9929,stroke-width:1px",
    ]


def test_names_from_the_wire_stay_inside_their_labels() -> None:
    """Every line is one of the few statements that are made, and none of them steers a terminal."""
    picture = picture_of(hostile_flows())
    for lines, form in ((graphviz(picture), DOT_LINE), (mermaid(picture), MERMAID_LINE)):
        for line in lines:
            assert form.fullmatch(line), line
            assert not UNSAFE.search(line), line


def test_graphviz_shows_what_came_over_the_wire() -> None:
    """Its own reading of a label is the name, as a terminal would show it."""
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    names = ['a"]; evil [label="x', "&quot;&lt;b&gt;", "back\\slash\\", "\\N\\G\\l", "<b>"]
    text = "\n".join(graphviz(picture_of([made_flow(name, "t") for name in names])))
    svg = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True, timeout=60)
    assert svg.stderr == ""
    shown = [re.sub(r"&#(\d+);", lambda one: chr(int(one[1])), text) for text in re.findall(r"<text[^>]*>(.*?)</text>", svg.stdout)]  # fmt: skip # noqa: E501
    named = {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "-": "-"}
    for name in names:
        assert "".join(named.get(char, char) for char in name).replace("\xa0", " ") in [
            one.replace("\xa0", " ") for one in shown
        ]


def test_mermaid_has_room_for_the_largest_picture() -> None:
    """``maxTextSize`` is 50,000 characters, ``maxEdges`` 500; names are long, every character is escaped. What finds
    no room is counted.
    """

    def name(number: int) -> str:
        return f"{'%' * 30}{'abcdefghij'[number % 10] * 7}{'klmn'[number // 10] * 200}"

    flows = [
        made_flow(name(client), name(topic), role="consumer", software=(None, None), groups=(name(client),) * 4,
                  zone=name(client), lag=9**9, errors=9**9, unanswered=9**9, brokers=[("a", 9**9)],
                  names=(Name("%" * 255, "comment"),), cluster=name(topic))
        for topic in range(MAX_BOXES)
        for client in range(MAX_BOXES)
    ]  # fmt: skip
    picture = picture_of(flows)
    assert (len(picture.clients), len(picture.topics), len(picture.edges)) == (MAX_BOXES, MAX_BOXES, MAX_EDGES)
    lines = list(mermaid(picture))
    assert 40_000 < len("\n".join(lines)) < 50_000
    drawn = sum("-->" in line for line in lines)
    assert lines[-1] == f'  left_out["{MAX_BOXES * MAX_BOXES - drawn:,} smaller flows are not shown"]'
    numbers = [int(number) for line in lines if "linkStyle" in line for number in line.split()[1].split(",")]
    assert sorted(numbers) == list(range(drawn))


def test_colours_are_told_in_words_too() -> None:
    """An arrow that is red has errors, refused records or unanswered requests in its label."""
    for line in graphviz(picture_of([made_flow("a", errors=1), made_flow("b", unanswered=1), made_flow("c")])):
        if "->" in line:
            assert (COLORS["bad"] in line) == ("error" in line or "unanswered" in line)
