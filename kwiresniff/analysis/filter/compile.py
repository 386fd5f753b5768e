"""A parsed filter into closures.

Everything is compiled twice: once over final getters, where every value is known, and once over early ones, where
logic has three values: true, false and None for "only the body decides" (Kleene's tables for and, or, not).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwiresniff.analysis.filter.fields import Field, Getter, Values, body_field, fields, unknown_step
from kwiresniff.analysis.filter.literals import Test, asked_name, is_null, test
from kwiresniff.analysis.filter.parser import TEXT_OPERATORS, AllOf, Comparison, Not, Tree, parse
from kwiresniff.analysis.filter.record_fields import RECORD_NAMES, record_field
from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.depths import DEPTHS, Depth
from kwiresniff.base.needs import Needs
from kwiresniff.errors import FilterError
from kwiresniff.model import Exchange, TopicNames

Verdict = Callable[[Exchange], "bool | None"]

#: Fields that may be those of the fetch session that an exchange belongs to.
_OF_SESSIONS = frozenset({"topic", "partition"})


class Filter:
    """A compiled expression.

    ``depth`` is how deep exchanges must be decoded for ``matches`` to be right: ``headers``, ``errors``, ``bodies`` or
    ``records``. ``field_names`` are the names of its fields, ``asked_names`` those of addresses that it asks for.
    """

    __slots__ = ("_early", "_final", "asked_names", "depth", "field_names", "text")

    def __init__(
        self,
        text: str,
        early: Verdict,
        final: Verdict,
        depth: Depth,
        field_names: frozenset[str],
        asked_names: tuple[str, ...] = (),
    ) -> None:
        self.text = text
        self.depth = depth
        self.field_names = field_names
        self.asked_names = asked_names
        self._early = early
        self._final = final

    @property
    def reads_decoded(self) -> bool:
        """Whether it looks at what plugins make of keys and values, so that they must be asked before ``matches``."""
        return any(name.startswith("record.") or ".decoded" in name for name in self.field_names)

    @property
    def needs(self) -> Needs:
        """The needs of ``matches``; topics and partitions may be those of a fetch session."""
        return Needs(self.depth, sessions=not self.field_names.isdisjoint(_OF_SESSIONS), digests=True)

    def matches_header(self, exchange: Exchange) -> bool | None:
        """The verdict without any body, or None when a body is needed. Also right while the response is to come."""
        return self._early(exchange)

    def matches(self, exchange: Exchange) -> bool:
        """The verdict on an exchange that is complete and decoded to ``depth``."""
        return bool(self._final(exchange))


def compile_filter(
    text: str,
    topic_name: TopicNames | None = None,
    names_known: Callable[[], int] | None = None,
    names: AddressNames | None = None,
) -> Filter:
    """A filter from its text.

    ``topic_name`` tells the names of topics that bodies mention by id only, of which it has learned and forgotten
    ``names_known``. ``names`` are those of addresses, which may stand in their place. Raises FilterError with the
    0-based position of the mistake and what would have been accepted there.
    """
    known = fields(topic_name, names_known, names)
    listed = ", ".join([*known, "request.body.<path>", "response.body.<path>", *RECORD_NAMES])
    tree = parse(text, lambda name: name in known or _path_field(name) is not None, listed)
    compiler = _Compiler(known)
    early, final = compiler.compile(tree)
    return Filter(text, early, final, compiler.depth, frozenset(compiler.names), tuple(compiler.asked_names))


def _path_field(name: str) -> Field | None:
    return body_field(name) or record_field(name)


class _Compiler:
    def __init__(self, known: dict[str, Field]) -> None:
        self._known = known
        self.depth: Depth = "headers"
        self.names: set[str] = set()
        self.asked_names: dict[str, None] = {}

    def compile(self, tree: Tree) -> tuple[Verdict, Verdict]:
        """The early and the final form of a tree."""
        if isinstance(tree, Comparison):
            return self._comparison(tree)
        if isinstance(tree, Not):
            early, final = self.compile(tree.part)
            return _not(early), _not(final)
        parts = [self.compile(part) for part in tree.parts]
        decisive = not isinstance(tree, AllOf)
        return _joined([early for early, _ in parts], decisive), _joined([final for _, final in parts], decisive)

    def _comparison(self, comparison: Comparison) -> tuple[Verdict, Verdict]:
        name = comparison.field.text
        field = self._known.get(name) or _path_field(name)
        assert field is not None  # the parser has checked it
        self.names.add(name)
        if name not in self._known and (wrong := unknown_step(name)) is not None:
            side = name.partition(".")[0]
            where = f"that the body of some {side} has" if wrong.path == f"{side}.body" else f"below {wrong.path!r}"
            near = f" (near it: {', '.join(wrong.near)})" if wrong.near else ""
            raise FilterError(
                f"expected a field {where}, not {wrong.step!r}{near}; see: kwiresniff schema show --{side}",
                position=comparison.field.position + wrong.start,
            )
        operator, literals = comparison.operator, comparison.values
        decide: Callable[[Getter], Verdict]
        sessions: Verdict | None = None
        if operator.text == "exists":
            decide = _decider(any)
            self._need(field.depth)
        else:
            null = operator.text in ("==", "!=", "in") and any(is_null(literal) for literal in literals)
            values = tuple(literal for literal in literals if not (null and is_null(literal)))
            one = test(name, field.kind, operator, values) if values else _never
            looks_into_text = operator.text in TEXT_OPERATORS
            if name in ("client", "broker") and field.kind == "host" and not looks_into_text:
                self.asked_names.update(dict.fromkeys(filter(None, map(asked_name, values))))
            if field.kind == "record":
                decide = _some(_null_or(one)) if null else _some(one)
            else:
                decide = _some_or_none(one) if null else _some(one)
            sessions = field.sessions(one) if field.sessions is not None and not null else None
            is_outcome = field.kind == "outcome" and not looks_into_text
            self._need(_outcome_depth(values) if is_outcome else field.depth)
        early, final = decide(field.early), decide(field.final)
        if sessions is not None and field.named is not None:
            final = _joined([decide(field.named), sessions], True)
        if field.kind == "outcome":
            early = _settled(field.early, decide)
        if operator.text == "!=":
            return _not(early), _not(final)
        return early, final

    def _need(self, depth: Depth) -> None:
        self.depth = max(self.depth, depth, key=DEPTHS.index)


def _never(value: Any) -> bool:
    return False


def _decider(passes: Callable[[Values], bool]) -> Callable[[Getter], Verdict]:
    """Makes verdicts of getters: whether their values pass, None where they are not known."""

    def decide(get: Getter) -> Verdict:
        def verdict(exchange: Exchange) -> bool | None:
            values = get(exchange)
            return None if values is None else passes(values)

        return verdict

    return decide


def _some(one: Test) -> Callable[[Getter], Verdict]:
    """True when any value passes."""
    return _decider(lambda values: any(map(one, values)))


def _some_or_none(one: Test) -> Callable[[Getter], Verdict]:
    """True when any value passes or there is no value."""
    return _decider(lambda values: not values or any(map(one, values)))


def _null_or(one: Test) -> Test:
    """True for no value in a record, too."""
    return lambda value: value is None or one(value)


def _settled(possible: Getter, decide: Callable[[Getter], Verdict]) -> Verdict:
    """For a field of which only the possible values are known: the verdict they agree on, else None."""

    def verdict(exchange: Exchange) -> bool | None:
        verdicts = {decide(lambda _, value=value: (value,))(exchange) for value in possible(exchange) or ()}  # type: ignore[misc]
        return verdicts.pop() if len(verdicts) == 1 else None

    return verdict


def _outcome_depth(values: tuple[Any, ...]) -> Depth:
    """The depth that tests of ``outcome`` need: only ok, error and undecoded depend on the body."""
    return "errors" if any(value.text in ("ok", "error", "undecoded") for value in values) else "headers"


def _not(part: Verdict) -> Verdict:
    def verdict(exchange: Exchange) -> bool | None:
        found = part(exchange)
        return None if found is None else not found

    return verdict


def _joined(parts: list[Verdict], decisive: bool) -> Verdict:
    """The verdict of several parts: ``decisive`` as soon as one has it, else None where one is not known."""

    def verdict(exchange: Exchange) -> bool | None:
        result: bool | None = not decisive
        for part in parts:
            found = part(exchange)
            if found is decisive:
                return decisive
            if found is None:
                result = None
        return result

    return verdict
