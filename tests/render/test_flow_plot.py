"""The picture of flows in a report."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from kwiresniff.analysis.flow_picture import MAX_BOXES, picture_of
from kwiresniff.render.flow_graphs import COLORS
from kwiresniff.render.page.flow_plot import flow_plot
from tests.support.flows import made_flow
from tests.support.harmful_text import UNSAFE

SVG = "{http://www.w3.org/2000/svg}"


def test_a_client_that_reads_and_writes_stands_at_both_sides() -> None:
    """With its group and its lag where it reads."""
    picture = picture_of([
        made_flow("shop"),
        made_flow("bill", role="consumer", groups=("billing",), lag=7),
        made_flow("bill", "invoices"),
    ])  # fmt: skip
    drawn = ElementTree.fromstring(flow_plot(picture))
    assert [text.text for text in drawn.iter(f"{SVG}text")] == [
        "shop", "10.0.0.5", "bill", "10.0.0.5", "orders", "invoices", "bill", "10.0.0.5", "group billing", "lag 7",
    ]  # fmt: skip
    strokes = [path.get("stroke") for path in drawn.iter(f"{SVG}path") if path.get("stroke")]
    assert strokes == [COLORS["ok"], COLORS["warn"], COLORS["ok"]]


def test_wider_arrows_are_more_bytes() -> None:
    """Four times as many are twice as wide beyond the thinnest."""
    svg = flow_plot(
        picture_of([made_flow("a", size_bytes=400), made_flow("b", size_bytes=100), made_flow("c", size_bytes=0)])
    )
    assert re.findall(r'stroke-width="([\d.]+)"', svg) == ["8.0", "4.5", "1.0"]


def test_nothing_is_drawn_outside_the_picture() -> None:
    """With as many boxes as there may be."""
    flows = [
        made_flow(f"c{'abcdefgh'[at % 8]}{'ijklmnop'[at // 8]}", f"t{at}", address=f"10.0.0.{at}")
        for at in range(MAX_BOXES)
    ]
    drawn = ElementTree.fromstring(flow_plot(picture_of(flows)))
    width, height = (float(number) for number in (drawn.get("viewBox") or "").split()[2:])
    boxes = [[float(box.get(name) or 0) for name in ("x", "y", "width", "height")] for box in drawn.iter(f"{SVG}rect")]
    assert len(boxes) == 2 * MAX_BOXES
    assert all(x >= 0 and x + wide <= width and y >= 0 and y + high <= height for x, y, wide, high in boxes)


def test_names_from_the_wire_are_text() -> None:
    """No tag, no attribute, nothing invisible."""
    name = "<script>alert(1)</script>\"'&lt;\x1b[31m\u202e]]>"
    svg = flow_plot(picture_of([made_flow(name, name, groups=(name,), role="consumer", zone=name, address="10.0.0.5")]))
    assert not UNSAFE.search(svg)
    tags = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(svg).iter()}
    assert tags == {"svg", "g", "title", "path", "rect", "text"}
