"""``kwiresniff audit``: which clients would break on another version of Kafka."""

from __future__ import annotations

import sys

import click

from kwiresniff.analysis.audit import BREAKS, NOT_JUDGED, VERDICTS, audit
from kwiresniff.cli.collect import FORMS, print_objects
from kwiresniff.cli.inventory import collect, writer
from kwiresniff.cli.options import ReadOptions, capture_command, form_option
from kwiresniff.cli.outcomes import FAILED
from kwiresniff.errors import SchemaError
from kwiresniff.export.clients import audit_json
from kwiresniff.schema import find_release


@capture_command("audit")
@click.option("--target", metavar="RELEASE", required=True, help="The release of Kafka to be moved to, as 4.0.")
@form_option(FORMS)
def command(captures: tuple[str, ...], options: ReadOptions, target: str, form: str) -> int:
    """Which clients would break on that release of Kafka, with evidence.

    Judged are the versions that clients used in the captures. "unknown" is a client that was held down by its present
    broker, or whose software does not say what else it can. The exit code is 1 when any would break.
    """
    try:
        release = find_release(target)
    except SchemaError as error:
        raise click.UsageError(f"Invalid value for --target: {error}") from error
    found = collect(captures, options)
    rows = audit(found.clients, release)
    if form == "table":
        writer(found.source).audit(rows)
        if rows and not options.quiet:
            counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in VERDICTS}
            listed = ", ".join(f"{many} {name.replace('_', ' ')}" for name, many in counts.items() if many)
            sys.stdout.flush()
            what = "client" if len(rows) - counts[NOT_JUDGED] == 1 else "clients"
            print(f"kwiresniff: Kafka {release}, {what}: {listed}", file=sys.stderr)
    else:
        print_objects((audit_json(row, release, found.source.files) for row in rows), form)
    return found.end(FAILED if any(row.verdict == BREAKS for row in rows) else 0)
