"""The names of ``typing`` for every module but the pipeline's, without importing ``typing``.

For a type checker they are ``typing``'s own. At run time annotations are text that nobody evaluates, so a name that
only stands in them may be anything; what classes derive from does here what it has to. ``typing`` and what it imports
take a fifth of a short run, and a named tuple of its making, which is compiled from text, as long as ten classes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO as IO
    from typing import Any as Any
    from typing import BinaryIO as BinaryIO
    from typing import ClassVar as ClassVar
    from typing import Final as Final
    from typing import Generic as Generic
    from typing import Literal as Literal
    from typing import NamedTuple as NamedTuple
    from typing import NoReturn as NoReturn
    from typing import Protocol as Protocol
    from typing import Self as Self
    from typing import TextIO as TextIO
    from typing import TypeAlias as TypeAlias
    from typing import TypeVar as TypeVar
    from typing import final as final

    from mypy_extensions import mypyc_attr as mypyc_attr
else:
    from collections import _tuplegetter as _member  # as fast as a slot; a property takes three times as long

    Any = BinaryIO = ClassVar = Final = IO = NoReturn = Self = TextIO = TypeAlias = object

    def TypeVar(name):
        """A type that is not known yet."""
        return name

    def final(kind):
        """Says that no class derives from this one."""
        return kind

    def mypyc_attr(**options):
        """Tells mypyc how to compile a class; ``mypy_extensions``, whose it is, imports ``typing``."""
        return lambda kind: kind

    class Generic:
        """The base of classes that are ``Name[parameters]`` in annotations."""

        __slots__ = ()

        def __class_getitem__(cls, parameters):
            return cls

    class Literal(Generic):
        """One of the values in brackets."""

    class Protocol(Generic):
        """The base of classes that only say what others have to offer."""

        __slots__ = ()

    class _Maker(type):
        """Makes the members of a named tuple from the annotations of its class."""

        def __new__(cls, name, bases, body):
            if bases != (tuple,):
                fields = tuple(body.get("__annotations__", ()))
                defaults = {field: body[field] for field in fields if field in body}
                if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                    raise TypeError(f"{name}: a field without a default follows one that has one")
                body |= {field: _member(index, "") for index, field in enumerate(fields)}
                body |= {"__slots__": (), "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
                body["_defaults"] = tuple(defaults.values())
            return super().__new__(cls, name, bases, body)

    class NamedTuple(tuple, metaclass=_Maker):
        """What derives from it is as if it derived from ``typing.NamedTuple``.

        The module has ``from __future__ import annotations``: without it the fields are not found on every Python.
        """

        __slots__ = ()

        def __new__(cls, *values, **named):
            left = len(cls._fields) - len(values)
            if named or left:
                usual = not named and 0 < left <= len(cls._defaults)
                values = values + cls._defaults[-left:] if usual else _filled(cls, values, named)
            return tuple.__new__(cls, values)

        @classmethod
        def _make(cls, values):
            return cls(*values)

        def _replace(self, **named):
            found = self._make(map(named.pop, self._fields, self))
            if named:
                raise ValueError(f"{type(self).__name__} has no field {', '.join(sorted(named))}")
            return found

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            fields = ", ".join([f"{name}={value!r}" for name, value in self._asdict().items()])
            return f"{type(self).__name__}({fields})"

    def _filled(kind, values, named):
        """All values of a named tuple in the order of its fields; raises TypeError where a function would."""
        fields, defaults = kind._fields, kind._field_defaults
        try:
            found = [named.pop(name) if name in named else defaults[name] for name in fields[len(values) :]]
        except KeyError as missing:
            raise TypeError(f"{kind.__name__} has no value for {missing}") from None
        if named or len(values) > len(fields):
            wrong = sorted(named) or f"{len(values)} values"
            raise TypeError(f"{kind.__name__} has the fields {', '.join(fields)}; given: {wrong}")
        return (*values, *found)
