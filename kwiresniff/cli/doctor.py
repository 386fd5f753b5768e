"""``kwiresniff doctor``: what is wrong, the worst first."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kwiresniff.analysis.doctor import SEVERITIES, Doctors
from kwiresniff.analysis.named import finding_with_names
from kwiresniff.cli.collect import FORMS, end, print_objects, read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions, capture_command, form_option
from kwiresniff.cli.outcomes import FAILED
from kwiresniff.cli.plugin_examiners import examiners_of
from kwiresniff.export.findings import finding_json
from kwiresniff.render.findings import FindingWriter
from kwiresniff.render.terminal import stdout_for
from kwiresniff.results.findings import Finding


@capture_command("doctor")
@form_option(FORMS)
@click.option(
    "--fail-on",
    type=click.Choice([*SEVERITIES, "never"]),
    default="error",
    show_default=True,
    help="Exit with 1 when there is a finding as severe as this or worse.",
)
def command(captures: tuple[str, ...], options: ReadOptions, form: str, fail_on: str) -> int:
    """What is wrong, the worst first, with the packets that show it and what to do.

    Errors that clients get, slow and unanswered requests, throttling, rebalances, tiny batches, connection churn, TLS
    failures, packets sent twice, damaged batches. -v adds what was observed, and which causes were weighed.
    """
    source = EventSource(captures, options, Doctors.NEEDS, screen=False, payloads=True)
    doctor = Doctors(source.topic_name, examiners_of(source.plugins), source.clusters)
    finished, messages = read_through(source, doctor.exchange, doctor.add)
    judgement, reasons = doctor.judgement(), options.verbose > 0
    found = [finding_with_names(one, source.names) for one in judgement.findings]
    if form == "table":
        writer = FindingWriter(*stdout_for(options.color), source.files, reasons=reasons)
        writer.write(found)
        if reasons:
            writer.write_rejected(judgement.rejected)
    else:
        print_objects((finding_json(one, source.files, reasons=reasons) for one in found), form)
    told = f"{source.shown} exchanges, {in_short(found)}" if source.shown else ""
    severe = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on != "never" else ()
    failed = any(one.severity in severe for one in found)
    return end(source, finished, messages, told=told, code=FAILED if failed else 0)


def in_short(findings: Sequence[Finding]) -> str:
    """How many findings there are of each severity."""
    counts = {name: sum(one.severity == name for one in findings) for name in SEVERITIES}
    return f"findings: {', '.join(f'{count} {name}' for name, count in counts.items() if count) or 'none'}"
