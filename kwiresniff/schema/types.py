"""Message definitions as the codec sees them: one message at one version, nothing left to decide.

Sources: KIP-482 (flexible versions), the protocol guide's type names.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class WireField(NamedTuple):
    """One field at one version.

    ``type`` is a leaf type or ``STRUCT``. With ``array`` the field is an array of that type and ``nullable`` says
    whether the array may be null; without it ``nullable`` says whether the value itself may be. In a flexible
    version array counts are UNSIGNED_VARINT of count + 1, else INT32; a nullable STRUCT is led by an INT8, -1 for
    null and 1 for present, or in a tagged field by an UNSIGNED_VARINT, 0 for null. ``tag`` is the tag number of a
    tagged field or None. ``default`` is the value a tagged
    field has when it is absent (JSON form; ``[]`` for arrays, None for null, a dict for a struct).
    ``entity`` is Kafka's entityType (``topicName``, ``groupId``, ``brokerId``, ...) or empty, ``enum`` the name of
    the enumeration its values belong to (``error_code``, ``acks``, ...) or empty.
    """

    name: str
    type: str
    array: bool = False
    nullable: bool = False
    tag: int | None = None
    default: Any = None
    fields: tuple[WireField, ...] = ()
    entity: str = ""
    enum: str = ""


class MessageVersion(NamedTuple):
    """One message at one version, tagged ``fields`` last by tag. ``kind`` is ``request``, ``response``, ``header`` or
    ``data``, the last two with an ``api_key`` of -1; ``flexible`` ones end structures with tags.
    """

    name: str
    api_key: int
    kind: str
    version: int
    flexible: bool
    header_version: int
    fields: tuple[WireField, ...] = ()
