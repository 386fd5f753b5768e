"""From segments to the sink of whoever wants the events: the analyzer and the sinks that commands, programs in Python
and tasks of the pipeline all have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kwiresniff.analysis.sinks import Narrowed, Observed, Redacted
from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.needs import Needs
from kwiresniff.base.tls_secrets import TlsSecrets
from kwiresniff.identity.clusters import LEARNED_FROM, Clusters
from kwiresniff.identity.copies import Copies
from kwiresniff.model import Event, Exchange, Sink
from kwiresniff.plugins import Plugins
from kwiresniff.plugins.sinks import LEARNED_FROM as SCHEMAS_FROM
from kwiresniff.plugins.sinks import AnnotatingSink, DecodingSink, RedactingSink, SchemaLearner
from kwiresniff.session import Analyzer

if TYPE_CHECKING:
    from kwiresniff.analysis.redact import Redactor


class Reading:
    """What stands between segments and a sink.

    ``needs`` are those of the sink; those of the filter ``expression``, of redaction and of ``plugins`` are added to
    them, and bodies come as text, digests or in part only where none of these looks into them. ``holds`` tells from the
    header of an exchange whether it is wanted, besides the filter. ``names`` are those of addresses, for the filter.
    ``observe`` is called with every event before it is known what is wanted. ``connections`` are the open ones that had
    an exchange that is wanted.

    Call ``start`` before ``chain``. Raises FilterError for an expression that makes no sense.
    """

    def __init__(
        self,
        needs: Needs,
        plugins: Plugins,
        expression: str | None = None,
        *,
        holds: Callable[[Exchange], bool] | None = None,
        names: AddressNames | None = None,
        redactor: Redactor | None = None,
        observe: Callable[[Event], None] | None = None,
    ) -> None:
        self.plugins, self.redactor = plugins, redactor
        plugins.hides_values = redactor is not None
        self.filter = None
        if expression is not None:
            from kwiresniff.analysis.filter import compile_filter

            self.filter = compile_filter(expression, self.topic_name, lambda: self.analyzer.topics.changes, names)
            needs = (needs | self.filter.needs)._replace(attempts=False)
        self._decodes = bool(plugins.decoders) and needs.depth == "records"
        if redactor is not None or self._decodes or plugins.others:  # they look into every body
            needs |= Needs(needs.depth)
        self.needs = needs
        self.narrows = self.filter is not None or holds is not None
        self.connections: set[int] = set()
        self.asked = 0  # exchanges whose headers were looked at, where not all are wanted
        self._holds = holds
        self._observe = observe
        self._learns = self._decodes and bool(plugins.learners)
        self._always_decoded = (LEARNED_FROM if needs.clusters else frozenset()) | (
            SCHEMAS_FROM if self._learns else frozenset()
        )

    def start(
        self, tls_secrets: TlsSecrets | None = None, *, show_secrets: bool = False, ports: Iterable[int] = ()
    ) -> Analyzer:
        """The analyzer, which is a new one each time."""
        self.connections.clear()
        self.analyzer = Analyzer(
            self.needs,
            exchange_filter=self._header_verdict if self.narrows else None,
            show_secrets=show_secrets,
            ports=ports,
            tls_secrets=tls_secrets,
        )
        return self.analyzer

    def topic_name(self, topic_id: str) -> str | None:
        """The name of a topic id, as far as the captures have shown it."""
        return self.analyzer.topics.name(topic_id)

    def chain(self, sink: Sink, clusters: Clusters, *, all_views: bool = False) -> Sink:
        """The sinks in front of ``sink``, in the order in which events pass them.

        What must see every event, whatever the user has asked for, stands before ``Narrowed``; what must not see
        records in plain stands behind ``Redacted``. ``Copies`` stands behind ``Narrowed``: of two views of a connection
        the one is shown that was asked for. Values are decoded before the filter where it looks at what they are
        decoded to, with what is known of their cluster in ``clusters``.
        """
        plugins, topic_name = self.plugins, self.topic_name
        decodes_first = self._decodes and self.filter is not None and self.filter.reads_decoded
        if plugins.loaded:
            sink = AnnotatingSink(sink, plugins)
        if self.redactor is not None:
            sink = Redacted(sink, self.redactor)
            if plugins.redactors:
                sink = RedactingSink(sink, plugins, topic_name)
        if self._decodes and not decodes_first:
            sink = DecodingSink(sink, plugins, topic_name, clusters)
        sink = Copies(sink, all_views=all_views)
        if self.narrows:
            sink = Narrowed(sink, self._matches, self.connections)
        if decodes_first:
            sink = DecodingSink(sink, plugins, topic_name, clusters)
        if self._learns:
            sink = Observed(sink, SchemaLearner(plugins, topic_name, clusters).learn)
        if self._observe is not None:
            sink = Observed(sink, self._observe)
        return sink

    def report_problems(self, sink: Sink) -> None:
        """Gives ``sink`` what was wrong with plugins since."""
        for problem in self.plugins.take_problems():
            sink.on_problem(problem)

    def _header_verdict(self, exchange: Exchange) -> bool | None:
        """The verdict before bodies are decoded; None is a maybe.

        What tells which brokers are one cluster, or may hold schemas that a plugin learns, is decoded in any case, as
        is everything where somebody observes.
        """
        self.asked += 1
        wanted: bool | None = self._holds is None or self._holds(exchange)
        if wanted and self.filter is not None:
            wanted = self.filter.matches_header(exchange)
        if wanted is False and (self._observe is not None or exchange.api_key in self._always_decoded):
            return None
        return wanted

    def _matches(self, exchange: Exchange) -> bool:
        """The verdict, once bodies are decoded as the filter needs them."""
        return (self._holds is None or self._holds(exchange)) and (self.filter is None or self.filter.matches(exchange))
