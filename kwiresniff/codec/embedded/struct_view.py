"""One interface to look into a structure and to open its bytes, whether it is a decoded body or a node of a tree.

What bytes hold is put beside them: in a body as a member ``<field>_decoded``, a dict of ``message``, ``version`` and
``data``; in a tree as the children of the field's node. Bytes that should hold something and do not are a problem
``embedded_undecoded``, and stay as they are.

Bytes that are in no form of Kafka's are read by somebody else, who hands over what they hold with ``put``.

The view of a body is here, that of a node in ``kwiresniff.codec.node_view``: most commands draw no trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from kwiresniff import schema
from kwiresniff.base.body_members import DECODED
from kwiresniff.codec.body_walker import MessageSkipper
from kwiresniff.codec.codecs import KEPT, data_decoder, decoder
from kwiresniff.codec.dissector import MessageBytes
from kwiresniff.codec.embedded.embedded_format import Content, Contents
from kwiresniff.codec.folding import front_of, problems_of
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Body, Direction, Problem

if TYPE_CHECKING:
    from kwiresniff.codec.headers import RequestHeader

#: Problems reported of what is embedded in one message: more of the same add nothing.
MAX_PROBLEMS = 100
#: Structures of an array that are opened without asking first whether there is something in them.
FEW = 16

#: ``meaning(name, value)``: what a person wants to read beside a value, or an empty text.
Meaning = Callable[[str, Any], str]


class StructView(Protocol):
    """A structure whose fields can be read and opened."""

    def get(self, name: str) -> Any:
        """The plain value of a field, or None when there is none."""

    def each(self, name: str, having: str = "", holding: Contents | None = None) -> Iterator[StructView]:
        """The structures of an array whose field ``having``, if named, is not empty; with ``holding``, structures may
        be left out in which that field would be neither opened nor reported.
        """

    def records(self, name: str) -> Iterator[StructView]:
        """The records of a record set, control records left out."""

    def open(self, name: str, content: Content | None) -> StructView | None:
        """Decode a field's bytes as ``content``; what they hold, or None."""

    def open_frame(self, name: str, direction: Direction, header: RequestHeader) -> None:
        """Decode a field's bytes as a whole request or response whose header has been read."""

    def put(self, name: str, found: Body, title: str, meaning: Meaning) -> None:
        """Put beside a field's bytes what they hold: a dict of ``message``, ``version`` and ``data``."""

    def complain(self, name: str, title: str, reason: str) -> None:
        """Say why a field's bytes do not hold what they should, which is called ``title``."""

    def hint(self, name: str, text: str) -> None:
        """Say how more could be seen of a field's bytes; only a tree has a place for it."""


#: The place of a structure: its path, or its parent, field and index or -1, from which the path is made on demand.
Place: TypeAlias = "str | tuple[BodyView, str, int]"


class BodyView:
    """A structure of a decoded body. ``problems`` is shared by all that come from one message."""

    __slots__ = ("_place", "body", "problems")

    def __init__(self, body: Body, problems: list[Problem], place: Place = "") -> None:
        self.body = body
        self.problems = problems
        self._place = place

    @property
    def path(self) -> str:
        """The path from the message to the structure."""
        place = self._place
        if isinstance(place, str):
            return place
        above, name, index = place
        return above._path(name) if index < 0 else f"{above._path(name)}[{index}]"

    def get(self, name: str) -> Any:
        return self.body.get(name)

    def each(self, name: str, having: str = "", holding: Contents | None = None) -> Iterator[BodyView]:
        elements: list[Body] = self.body.get(name) or []
        if holding is not None and len(elements) > FEW:
            yield from self._each_holding(name, elements, having, holding)
            return
        for index, element in enumerate(elements):
            if not having or element.get(having):
                yield BodyView(element, self.problems, (self, name, index))

    def _each_holding(self, name: str, elements: list[Body], field: str, holding: Contents) -> Iterator[BodyView]:
        left, others = _fitting(elements, field, holding)
        if holding.sure and others:
            claims = holding.skipper.claims
            wrong = (index for index in others if claims(elements[index][field]))
            left = sorted([*left, *islice(wrong, max(0, MAX_PROBLEMS - len(self.problems)))])
        for index in left:
            yield BodyView(elements[index], self.problems, (self, name, index))

    def records(self, name: str) -> Iterator[BodyView]:
        batches = self.body.get(name)
        for at, batch in enumerate(batches if isinstance(batches, list) else ()):
            if not batch.get("is_control"):
                field = f"{name}[{at}].records"
                for index, record in enumerate(batch.get("records") or ()):
                    yield _RecordView(record, self.problems, (self, field, index))

    def open(self, name: str, content: Content | None) -> BodyView | None:
        raw = self.body[name]
        if content is None:
            return None
        is_reported = content.sure and len(self.problems) < MAX_PROBLEMS
        if not is_reported and not _fits(raw, content):
            return None
        try:
            data, end = data_decoder(content.message, content.version)(raw, content.start, [])
        except DecodeError as error:
            if is_reported:
                complain(self, name, content.title, str(error))
            return None
        if content.exact and end != len(raw):
            complain(self, name, content.title, f"{len(raw) - end} bytes follow its end", sure=content.sure)
            return None
        return self._put(name, {"message": content.message, "version": content.version, "data": data})

    def open_frame(self, name: str, direction: Direction, header: RequestHeader) -> None:
        raw = self.body[name]
        content = content_of(header, direction)
        issues: list[Problem] = []
        try:
            inner, end = decoder(header.api_key, header.api_version, direction)(raw, header.body_offset, issues)
        except SchemaError as error:
            complain(self, name, content.title, str(error), sure=content.sure)
            return
        except DecodeError:
            inner, end = {}, -1
        if issues or end != len(raw):
            message = schema.message(header.api_key, header.api_version, direction)
            read = MessageBytes(message, raw, header.body_offset, records=True)
            if end < 0:
                inner, problems = front_of(read)
            else:
                problems = problems_of(read)
            for problem in problems[:1]:  # which says it best
                complain(self, name, content.title, problem.message, sure=content.sure)
        members = {
            "api_key": header.api_key,
            "api": schema.API_NAMES[header.api_key],
            "api_version": header.api_version,
            "correlation_id": header.correlation_id,
        }
        if direction == "request":
            members["client_id"] = header.client_id
        self.body[name + DECODED] = {**members, "body": inner}

    def put(self, name: str, found: Body, title: str, meaning: Meaning) -> None:
        self._put(name, found)

    def complain(self, name: str, title: str, reason: str) -> None:
        complain(self, name, title, reason)

    def hint(self, name: str, text: str) -> None:
        pass

    def _put(self, name: str, found: Body) -> BodyView:
        self.body[name + DECODED] = found
        return BodyView(found["data"], self.problems, (self, f"{name}{DECODED}.data", -1))

    def _path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


class _RecordView(BodyView):
    """A record: what its key and value hold stands together under ``decoded``."""

    __slots__ = ()

    def _put(self, name: str, found: Body) -> BodyView:
        self.body.setdefault("decoded", {})[name] = found
        return BodyView(found["data"], self.problems, (self, f"decoded.{name}.data", -1))


def _fitting(elements: list[Body], field: str, holding: Contents) -> tuple[list[int], list[int]]:
    """The indexes of the elements whose bytes may be opened, and of those whose bytes hold something else."""
    fits = holding.skipper.fits
    found: tuple[list[int], list[int]] = [], []
    for index, element in enumerate(elements):
        raw = element[field]
        if isinstance(raw, bytes) and raw:
            found[0 if fits(raw) else 1].append(index)
    return found


def _fits(raw: bytes, content: Content) -> bool:
    """Whether bytes can be decoded as that; jumping over them takes a tenth of failing to."""
    skipper = _skipper(content.message, content.version)
    end = skipper.skip(raw, content.start)
    return end == len(raw) or (end >= 0 and not content.exact)


@lru_cache(KEPT)
def _skipper(message: str, version: int) -> MessageSkipper:
    return MessageSkipper(schema.data_message(message, version))


def content_of(header: RequestHeader, direction: Direction) -> Content:
    """The content of bytes that are a whole message, whose header has been read."""
    return Content(f"{schema.API_NAMES[header.api_key]} {direction}", header.api_version, header.body_offset)


class ReportedStructure(Protocol):
    """A structure that a problem is noted of: where it is, and where its problems go."""

    problems: list[Problem]

    @property
    def path(self) -> str: ...


def complain(struct: ReportedStructure, name: str, title: str, reason: str, *, sure: bool = True) -> str:
    """Note that a field's bytes do not hold what they should, unless it was not ``sure``; gives what is said of it."""
    text = f"{name} should hold {title}: {reason}"
    if sure:
        path = f"{struct.path}.{name}" if struct.path else name
        note(struct.problems, Problem("embedded_undecoded", text, path=path))
    return text


def note(problems: list[Problem], problem: Problem) -> None:
    """Add one problem, unless there are enough."""
    if len(problems) < MAX_PROBLEMS:
        problems.append(problem)
