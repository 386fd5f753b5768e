"""Who is behind a proxy is shown where client and broker are."""

from __future__ import annotations

import io

from kwiresniff.analysis.clients import Inventory
from kwiresniff.model import Exchange
from kwiresniff.render.clients import ClientWriter
from kwiresniff.render.summary import SummaryWriter
from kwiresniff.render.tree import TreeWriter
from tests.support.exchanges import connection, exchange

PATH = "203.0.113.7:51515 -> 10.0.0.5:50000 -> 10.0.0.1:9092 -> kafka-1"


def behind_a_proxy() -> Exchange:
    """The broker's name is what a hostile client writes."""
    on = connection()
    on.proxied = {"client": "203.0.113.7:51515", "broker": "kafka-1\x1b[31m\u202e:9092", "by": "PROXY v2, SOCKS5"}
    return exchange(on=on)


class Ascii(io.StringIO):
    encoding = "ascii"


def test_a_tree_and_a_summary_show_the_way_through_the_proxy() -> None:
    """In a pipe whole, in a terminal as far as there is room; nothing of the name moves the cursor."""
    tree = TreeWriter(Ascii(), None, False).text(behind_a_proxy(), None, None).decode()
    assert PATH in tree.splitlines()[0] and " by PROXY v2, SOCKS5 " in tree.splitlines()[0]
    for width in (None, 160):
        line = SummaryWriter(Ascii(), width, False).text(behind_a_proxy()).decode()
        assert (PATH if width is None else PATH[:25]) in line
        assert not set("\x1b\u202e") & set(tree + line)


def test_a_client_is_shown_with_its_own_address() -> None:
    """Before that of the proxy that speaks for it, without the port."""
    one = behind_a_proxy()
    made = Inventory()
    made.exchange(one)
    made.connection(one.connection)
    out = Ascii()
    ClientWriter(out, None, False).clients(made.clients())
    first = out.getvalue().splitlines()[0]
    assert "203.0.113.7 -> 10.0.0.5 -> 10.0.0.1:9092 -> kafka-1" in first and "by PROXY v2, SOCKS5" in first
    assert "\x1b" not in first
