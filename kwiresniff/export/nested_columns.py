"""Columns of lists and of structures, which hold the columns of what is in them; and a column for each Arrow type.

Written for mypyc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from librt.strings import BytesWriter, write_i32_le

from kwiresniff.export.column_buffers import OFFSET_BYTES, BooleanColumn, Column, NameColumn, NumberColumn, TextColumn

if TYPE_CHECKING:
    from mypy_extensions import i64


@final
class ListColumn(Column):
    """Lists of the values of another column."""

    def __init__(self, values: Column) -> None:
        super().__init__()
        self.values = values
        self.ends = BytesWriter()
        write_i32_le(self.ends, 0)

    def end(self, there: bool) -> None:
        """Ends a list: what was added to ``values`` since the last one."""
        end: int = self.values.count
        write_i32_le(self.ends, end)
        self.mark(there)

    def append(self, value: Any) -> i64:
        size: i64 = OFFSET_BYTES
        for one in value or ():
            size += self.values.append(one)
        self.end(value is not None)
        return size

    def array(self, arrow: Any, kind: Any) -> Any:
        inner = self.values.array(arrow, kind.value_type)
        buffers = self._buffers(arrow, self.ends)
        return arrow.Array.from_buffers(kind, self.count, buffers, self.nulls, children=[inner])


@final
class StructColumn(Column):
    """Structures: tuples of a value of each of several columns."""

    def __init__(self, members: list[Column]) -> None:
        super().__init__()
        self.members = members

    def append(self, value: Any) -> i64:
        size: i64 = 0
        if value is None:
            for member in self.members:
                size += member.append(None)
        else:
            for at, member in enumerate(self.members):
                size += member.append(value[at])
        self.mark(value is not None)
        return size

    def array(self, arrow: Any, kind: Any) -> Any:
        return arrow.Array.from_buffers(
            kind, self.count, self._buffers(arrow), self.nulls, children=self.arrays(arrow, kind)
        )

    def arrays(self, arrow: Any, fields: Any) -> list[Any]:
        """The columns as arrays, each of the type of its field."""
        return [member.array(arrow, field.type) for member, field in zip(self.members, fields, strict=True)]


def column_of(arrow: Any, kind: Any) -> Column:
    """A column for values of an Arrow type. Days and moments are numbers, counted from 1970 on in the type's unit."""
    types = arrow.types
    if types.is_dictionary(kind):
        return NameColumn()
    if types.is_string(kind) or types.is_binary(kind):
        return TextColumn()
    if types.is_boolean(kind):
        return BooleanColumn()
    if types.is_list(kind):
        return ListColumn(column_of(arrow, kind.value_type))
    if types.is_struct(kind):
        return struct_of(arrow, kind)
    return NumberColumn(kind.bit_width // 8)


def struct_of(arrow: Any, fields: Any) -> StructColumn:
    """Columns for tuples of values of these fields, of a structure or of a schema."""
    return StructColumn([column_of(arrow, field.type) for field in fields])
