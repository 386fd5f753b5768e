"""Regular expressions searched in time proportional to the text, so that hostile text costs no more than other text.

Python's own engine tries one way after the other, of which ``(a+)+$`` has more than anybody can wait for. So it is
asked only where there cannot be many; else an automaton follows all ways at once (K. Thompson, "Regular Expression
Search Algorithm", CACM 11(6), 1968), whose states are made when a text needs them. What can be asked is only whether
there is a match, and to that both have the same answer.

The expression is read by Python's own parser, and single characters and edges (``^``, ``\\b``) are judged by its
engine. Look-arounds become positions that are found first, by automata of their own; those that look ahead run
backwards.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeAlias

#: Of longer texts only the front is searched. No name that Kafka allows is longer than 249 characters.
MAX_SEARCHED_CHARS = 1024
#: Steps that Python's engine may take for one text, by how often it may have to choose; some 50 us.
MAX_BACKTRACKING_STEPS = 4096
#: States of an automaton before texts are looked at; counted repetitions multiply them.
MAX_NODES = 2_000
#: Nodes and steps, of some 64 bytes each, that an automaton keeps; beyond them all are dropped.
MAX_REMEMBERED = 250_000
_STEP_SIZE = 4
#: Short texts whose verdict is remembered: most clients go by the same id all day.
MAX_VERDICTS = 1_024
_SHORT_CHARS = 64

_parser: Any = import_module("re._parser")
_compiler: Any = import_module("re._compiler")
_TYPE_FLAGS = re.ASCII | re.LOCALE | re.UNICODE
_REPEATS = (_parser.MAX_REPEAT, _parser.MIN_REPEAT)
_LOOKS = (_parser.ASSERT, _parser.ASSERT_NOT)
_CHARACTERS = (_parser.LITERAL, _parser.NOT_LITERAL, _parser.ANY, _parser.IN)
#: Constructs that need backtracking.
_UNSUPPORTED = {
    "GROUPREF": "references to groups",
    "GROUPREF_EXISTS": "conditions on groups",
    "ATOMIC_GROUP": "atomic groups",
    "POSSESSIVE_REPEAT": "possessive repetitions",
}

#: One item of a parsed expression: what it is and its arguments.
_Item: TypeAlias = tuple[Any, Any]


def search_function(pattern: str) -> Callable[[str], bool]:
    """Whether an expression matches anywhere in a text, of which the first ``MAX_SEARCHED_CHARS`` count.

    Raises re.error for what is no expression, nests too deeply, or cannot be searched in such time; OverflowError as
    ``re.compile`` does.
    """
    ways = _Ways()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "[[a]" means what it says today, whatever it may mean to a later Python
            compiled = re.compile(pattern)
            tree = _parser.parse(pattern)
        ways.count(tree, repeated=False)
        automaton = None if ways.is_plain else _Automaton(list(tree), tree.state.flags, backwards=False)
    except RecursionError:
        raise re.error("its parentheses nest too deeply") from None

    def search(text: str) -> bool:
        if automaton is None or ways.at_most(len(text)) <= MAX_BACKTRACKING_STEPS:
            return compiled.search(text) is not None
        return automaton.matches(text)

    remembered = lru_cache(MAX_VERDICTS)(search)
    return lambda text: remembered(text) if len(text) <= _SHORT_CHARS else search(text[:MAX_SEARCHED_CHARS])


class _Ways:
    """How many ways of matching a backtracking engine may have to try, by the length of the text."""

    def __init__(self) -> None:
        self.wild = False  # exponential in the length
        self.power = 1  # a search may begin anywhere
        self.factor = 1

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to choose."""
        return not self.wild and self.power == 1 and self.factor == 1

    def at_most(self, length: int) -> int:
        return MAX_BACKTRACKING_STEPS + 1 if self.wild else self.factor * (length + 1) ** self.power

    def count(self, items: Iterable[_Item], *, repeated: bool) -> None:
        """Count what the items add; ``repeated`` says that they stand in a repetition."""
        for kind, argument in items:
            if str(kind) in _UNSUPPORTED:
                raise re.error(f"{_UNSUPPORTED[str(kind)]} are not supported: they can take forever")
            if kind in _REPEATS:
                if argument[0] != argument[1]:  # else there is nothing to choose
                    self.power += 1
                    self.wild |= repeated
                self.count(argument[2], repeated=repeated or argument[1] > 1)
            elif kind is _parser.BRANCH:
                self.factor *= len(argument[1])
                self.wild |= repeated
                for branch in argument[1]:
                    self.count(branch, repeated=repeated)
            elif kind is _parser.SUBPATTERN:
                self.count(argument[3], repeated=repeated)
            elif kind in _LOOKS:
                self.wild |= repeated
                self.count(argument[1], repeated=repeated)


class _State:
    """The state of an automaton at a place in the text: its nodes, and where characters lead from there.

    ``steps`` are those made so far, by the edges at the place and the character there.
    """

    __slots__ = ("nodes", "steps")

    def __init__(self, nodes: frozenset[int]) -> None:
        self.nodes = nodes
        self.steps: dict[tuple[int, str], tuple[bool, _State]] = {}


class _Automaton:
    """The nodes of an expression, and the states that texts have led to."""

    def __init__(self, items: list[_Item], flags: int, *, backwards: bool) -> None:
        #: Node -> where it leads without a character, each on a condition: an edge's number and whether it must be one.
        self._free: list[list[tuple[int, tuple[int, bool] | None]]] = []
        #: Node -> the character it takes and where that leads.
        self._taking: dict[int, tuple[re.Pattern[str], int]] = {}
        self._edges: list[Callable[[str], Iterable[int]]] = []
        self._backwards = backwards
        self._states: dict[frozenset[int], _State] = {}
        self._remembered = 0
        self._end = self._node()
        self._start = self._sequence(items, flags, self._end)
        self._first = self._state(frozenset([self._start]))

    def matches(self, text: str) -> bool:
        """Whether there is a match anywhere."""
        return next(iter(self._ends(text)), None) is not None

    def positions(self, text: str) -> list[int]:
        """Where matches end; where they begin, of an automaton that runs backwards."""
        return list(self._ends(text))

    # -- searching -----------------------------------------------------------------------------------------------

    def _ends(self, text: str) -> Iterable[int]:
        size = len(text)
        edges = [0] * (size + 1)
        for number, positions in enumerate(self._edges):
            for at in positions(text):
                edges[at] |= 1 << number
        state = self._first
        for place in range(size + 1):
            at = size - place if self._backwards else place
            # The end of the text is a character, too: none.
            character = (text[at - 1 : at] if at else "") if self._backwards else text[at : at + 1]
            step = state.steps.get((edges[at], character))
            if step is None:
                step = self._step(state, edges[at], character)
            accepted, state = step
            if accepted:
                yield at

    def _step(self, state: _State, edges: int, character: str) -> tuple[bool, _State]:
        if self._remembered >= MAX_REMEMBERED:
            self._first.steps.clear()
            self._states = {self._first.nodes: self._first}
            self._remembered = 0
        here = self._reached(state.nodes, edges)
        led = {self._start}  # a match may begin at any place
        if character:
            for node in here:
                taking = self._taking.get(node)
                if taking is not None and taking[0].fullmatch(character) is not None:
                    led.add(taking[1])
        step = state.steps[edges, character] = (self._end in here, self._state(frozenset(led)))
        self._remembered += _STEP_SIZE
        return step

    def _reached(self, nodes: Iterable[int], edges: int) -> set[int]:
        """Every node that can be reached from these without a character."""
        found = set(nodes)
        todo = list(found)
        while todo:
            for node, condition in self._free[todo.pop()]:
                holds = condition is None or bool(edges >> condition[0] & 1) is condition[1]
                if holds and node not in found:
                    found.add(node)
                    todo.append(node)
        return found

    def _state(self, nodes: frozenset[int]) -> _State:
        found = self._states.get(nodes)
        if found is None:
            found = self._states[nodes] = _State(nodes)
            self._remembered += len(nodes)
        return found

    # -- building, from the end on ---------------------------------------------------------------------------------

    def _node(self) -> int:
        if len(self._free) >= MAX_NODES:
            raise re.error(f"too large: more than {MAX_NODES} steps, repetitions counted out")
        self._free.append([])
        return len(self._free) - 1

    def _sequence(self, items: Iterable[_Item], flags: int, after: int) -> int:
        """The node before a sequence that leads to ``after``."""
        ordered = list(items)
        for item in ordered if self._backwards else reversed(ordered):
            after = self._item(item, flags, after)
        return after

    def _item(self, item: _Item, flags: int, after: int) -> int:
        kind, argument = item
        if kind in _REPEATS:
            return self._repetition(argument, flags, after)
        if kind is _parser.SUBPATTERN:
            _, added, removed, inner = argument
            if added & _TYPE_FLAGS:
                flags &= ~_TYPE_FLAGS
            return self._sequence(inner, (flags | added) & ~removed, after)
        node = self._node()
        if kind is _parser.BRANCH:
            self._free[node] = [(self._sequence(branch, flags, after), None) for branch in argument[1]]
        elif kind in _CHARACTERS:
            self._taking[node] = (_alone(item, flags), after)
        elif kind is _parser.AT:
            edge = _alone(item, flags)
            self._on_edge(node, lambda text: [match.start() for match in edge.finditer(text)], True, after)
        elif kind in _LOOKS:
            direction, inner = argument
            look = _Automaton(list(inner), flags, backwards=direction > 0)
            self._on_edge(node, look.positions, kind is _parser.ASSERT, after)
        elif str(kind) != "FAILURE":  # which leads nowhere
            raise re.error(f"{str(kind).lower()} is not supported")
        return node

    def _on_edge(self, node: int, positions: Callable[[str], Iterable[int]], wanted: bool, after: int) -> None:
        self._free[node].append((after, (len(self._edges), wanted)))
        self._edges.append(positions)

    def _repetition(self, argument: Any, flags: int, after: int) -> int:
        least, most, items = argument
        # More than the text has characters is as good as any number.
        least = min(int(least), MAX_SEARCHED_CHARS + 1)
        if most is _parser.MAXREPEAT or int(most) > MAX_SEARCHED_CHARS:
            loop = self._node()
            self._free[loop] = [(after, None), (self._sequence(items, flags, loop), None)]
            node = loop
        else:
            node = after
            for _ in range(int(most) - least):
                optional = self._node()
                self._free[optional] = [(after, None), (self._sequence(items, flags, node), None)]
                node = optional
        for _ in range(least):
            node = self._sequence(items, flags, node)
        return node


def _alone(item: _Item, flags: int) -> re.Pattern[str]:
    """One item as an expression of its own."""
    state = _parser.State()
    state.flags = flags
    found: re.Pattern[str] = _compiler.compile(_parser.SubPattern(state, [item]), flags)
    return found
