"""Named tuples without ``typing``: held to those of ``typing``, which are made of the same members."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import typing
from collections.abc import Callable
from typing import Any

import pytest

from kwiresniff.base import light_typing
from tests.support.paths import ROOT


class Light(light_typing.NamedTuple):
    """What is tested."""

    name: str
    size: int = 3
    parts: tuple[str, ...] = ("a", "b")

    def twice(self) -> int:
        return self.size * 2


class Known(typing.NamedTuple):
    """What it is held to."""

    name: str
    size: int = 3
    parts: tuple[str, ...] = ("a", "b")

    def twice(self) -> int:
        return self.size * 2


class Empty(light_typing.NamedTuple):
    """Without fields."""


USES: dict[str, Callable[[Any], object]] = {
    "positions": lambda kind: tuple(kind("x", 1, ())),
    "names": lambda kind: tuple(kind(size=1, name="x")),
    "defaults": lambda kind: tuple(kind("x")),
    "member": lambda kind: (kind("x").name, kind("x").parts, kind("x", 8).twice()),
    "repr": lambda kind: repr(kind("x")).partition("(")[2],
    "as a tuple": lambda kind: (kind("x") == ("x", 3, ("a", "b")), kind("x") == kind("y"), hash(kind("x"))),
    "order": lambda kind: sorted([kind("b"), kind("a", 9), kind("a")])[0][1],
    "unpacked": lambda kind: list(kind("x")),
    "some by name": lambda kind: (tuple(kind("x", parts=())), tuple(kind("x", 4, parts=()))),
    "replaced": lambda kind: tuple(kind("x")._replace(size=9)),
    "as a dict": lambda kind: kind("x")._asdict(),
    "made": lambda kind: tuple(kind._make(["x", 1, ()])),
    "fields": lambda kind: (kind._fields, kind._field_defaults, kind.__match_args__),
    "pickled": lambda kind: [pickle.loads(pickle.dumps(kind("x"), protocol)) == kind("x") for protocol in range(6)],
    "copied": lambda kind: (copy.copy(kind("x")) == kind("x"), type(copy.deepcopy(kind("x"))) is kind),
    "no other attributes": lambda kind: hasattr(kind("x"), "__dict__"),
}
MISTAKES: dict[str, Callable[[Any], object]] = {
    "nothing": lambda kind: kind(),
    "too many": lambda kind: kind("x", 1, (), 4),
    "unknown": lambda kind: kind("x", colour="red"),
    "twice": lambda kind: kind("x", name="y"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_named_tuple_is_like_one_of_typing(use: Callable[[Any], object]) -> None:
    assert use(Light) == use(Known)


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
@pytest.mark.parametrize("kind", [Light, Known])
def test_what_is_wrong_with_its_values_is_a_type_error(kind: Any, mistake: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError, match=kind.__name__):
        mistake(kind)


@pytest.mark.parametrize("kind", [Light, Known])
def test_only_fields_are_replaced(kind: Any) -> None:
    with pytest.raises(ValueError, match="colour"):
        kind("x")._replace(colour="red")


@pytest.mark.parametrize("kind", [Light, Known])
def test_a_member_cannot_be_set(kind: Any) -> None:
    with pytest.raises(AttributeError):
        kind("x").name = "y"


@pytest.mark.parametrize("kind", [Light, Known])
def test_it_is_taken_apart_by_match(kind: Any) -> None:
    match kind("x", 1):
        case Light(name, size) | Known(name, size):
            assert (name, size) == ("x", 1)
        case _:
            pytest.fail("not matched")


def test_one_without_fields_is_the_empty_tuple() -> None:
    assert (Empty(), Empty._fields) == ((), ())


def test_a_field_without_a_default_cannot_follow_one_that_has_one() -> None:
    source = (
        "from __future__ import annotations\n"
        "from kwiresniff.base.light_typing import NamedTuple\n"
        "class Wrong(NamedTuple):\n    first: int = 1\n    second: int\n"
    )
    with pytest.raises(TypeError, match="Wrong"):
        exec(compile(source, "wrong", "exec"), {"__name__": "wrong"})


def test_what_only_types_are_made_of_may_stand_in_aliases_and_bases() -> None:
    """In a process of its own, since pytest has long imported ``typing``."""
    source = (
        "import sys\n"
        "from kwiresniff.base.light_typing import Any, Generic, Literal, Protocol, TypeVar, final\n"
        "T = TypeVar('T')\n"
        "Body = dict[str, Any]\n"
        "Side = Literal['a', 'b']\n"
        "class Bytes(Protocol):\n    def size(self) -> int: ...\n"
        "@final\nclass Many(Generic[T]):\n    pass\n"
        "print(isinstance(Many(), Many), isinstance(Many[int](), Many), 'typing' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "False"]
