"""The page on the doctor, made of docstrings: ``python -m tests.analysis.doctor_page > docs/doctor.md``."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Final

from kwiresniff.analysis import doctor
from kwiresniff.analysis.doctor.examine import CAUSES, OBSERVERS

_WIDTH: Final = 120
#: How the paragraph on a code begins in a docstring.
_CODE: Final = re.compile(r"`\w+` \(|Any other ")

_LEAD = """\
# What the doctor looks for

`kwiresniff doctor` works in three layers. Observers say what was seen and what it cost: requests that failed or came
late, records that were lost, doubled or not read, time for which nothing went on. Causes say what may explain it: what
must have been seen, what must not, what else looks the same. Of the causes those are told that explain the most harm
with the fewest assumptions. `-v` shows what was observed, what spoke for and against a cause, and the causes that were
rejected.

A finding says whom it concerns, what was seen, from when to when, in which packets, and what to do. What it explains
stands beneath it as a symptom and is not listed again: the slow and unanswered requests of a broker that stalled, the
churn of a client that cannot authenticate. What no cause explains is told as it was observed.

Findings come with a severity, which is that of the harm. `error`: something fails, stands still, or is lost. `warning`:
it works badly, or will not for long. `info`: good to know, often ordinary. Within one severity incidents come before
errors, symptoms without a visible cause, and waste, and among these the one that cost most. Waste is never graver than
harm. More than five findings that are alike become one, with all whom they concern. Evidence is up to five packets of
the capture; of connections it is the packet that ended or began them.

Slowness is judged by the broker's own time: what a request waited behind others of its connection, in a muted channel,
in a long poll or on a long path is not the broker's doing.

What Kafka's clients and brokers say with error codes in the ordinary course of things is no finding:
MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS, CONCURRENT_TRANSACTIONS, NOT_CONTROLLER, the UNSUPPORTED_VERSION of
ApiVersions, long polls under way when the capture or the consumer ends, requests that a client leaves unanswered
because it shuts down.

"""
_TAIL = """\
## Live

`kwiresniff sniff -i IFACE -o doctor` prints the findings on all that was captured so far, again whenever they change,
at most once a second; on a terminal it is the tab of a screen ([browse.md](browse.md#live)).

## Observers and causes of your own

A plugin brings classes derived from `Observer` of `kwiresniff.analysis.doctor` with `hooks.doctor_observer`, and with
`hooks.doctor_cause` functions that `cause` decorates, or classes derived from `Cause` where it takes several
observations; [plugins/client_names.py](../plugins/client_names.py) is a worked example. One that raises is reported,
and left out after a while. Error codes that an observer names in `judges` get no finding of their own.
"""


def page() -> str:
    """The page as Markdown."""
    findings = sorted(paragraph for one in CAUSES for paragraph in paragraphs_on_codes(one))
    observations = sorted(_paragraph(_docstrings()[one.__name__].split("\n\n")[0]) for one in OBSERVERS)
    return "".join([
        _LEAD,
        "## Findings, by their codes\n\n", *_listed(findings),
        "\n## Observations\n\nWhat a finding's `observed` is made of; the classes say what numbers each has.\n\n",
        *_listed(observations), "\n", _TAIL,
    ])  # fmt: skip


def paragraphs_on_codes(one: type) -> list[str]:
    """The paragraphs of a class's docstring that begin with a code, each with those that follow it."""
    found: list[str] = []
    for paragraph in map(_paragraph, _docstrings()[one.__name__].split("\n\n")):
        if _CODE.match(paragraph):
            # One paragraph may be on several codes, sentence by sentence.
            found += re.split(r"(?<=\.) (?=`\w+` \((?:error|warning|info))", paragraph)
        elif found:
            found[-1] += f" {paragraph}"
    return found


def _listed(paragraphs: Iterable[str]) -> Iterator[str]:
    for one in paragraphs:
        yield textwrap.fill(one, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False) + "\n"


def _paragraph(text: str) -> str:
    """One line, with names as Markdown has them."""
    return " ".join(text.split()).replace("``", "`")


@cache
def _docstrings() -> dict[str, str]:
    """The docstrings of observers and causes by name, from the sources: compiled classes have lost theirs."""
    trees = (ast.parse(path.read_text("utf-8")) for path in Path(doctor.__path__[0]).rglob("*.py"))
    classes = (node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))
    return {node.name: cleandoc(ast.get_docstring(node) or "") for node in classes}


if __name__ == "__main__":
    print(page(), end="")
