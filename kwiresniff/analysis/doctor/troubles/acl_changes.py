"""Changes of ACLs that take rights away: ACLs that deny, and deleted ACLs that allowed (KIP-290)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kwiresniff.analysis.doctor.bodies import request_body, response_body
from kwiresniff.analysis.doctor.evidence import client_of, clipped
from kwiresniff.analysis.doctor.wording import clock
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, MemoryBudget, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import CREATE_ACLS
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Body, Exchange

#: ``resource_type`` of resources with a name; ``permission_type``; ``pattern_type``.
KINDS = {2: "topic", 3: "group", 5: "transactional id"}
_DENY, _ALLOW = 2, 3
_PREFIXED = 4
#: Changes that are remembered, and those named in one finding.
MAX_CHANGES = 500
MAX_TOLD = 2


class _Change(NamedTuple):
    kind: str
    name: str
    is_prefix: bool
    text: str
    ns: int

    def concerns(self, what: str) -> bool:
        """Whether it applies to a resource, as ``topic orders``."""
        if not what.startswith(f"{self.kind} "):
            return False
        name = what[len(self.kind) + 1 :]
        return name.startswith(self.name) if self.is_prefix else self.name in (name, "*")


class AclChanges:
    """The changes of ACLs that take rights away, within a memory budget."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._changes: list[_Change] = []

    def note(self, exchange: Exchange) -> None:
        """Takes in a CreateAcls or DeleteAcls that succeeded."""
        request, answer = request_body(exchange), response_body(exchange)
        if exchange.api_key == CREATE_ACLS:
            for acl, result in zip(request.get("creations") or (), answer.get("results") or (), strict=False):
                if acl.get("permission_type") == _DENY and not result.get("error_code"):
                    self._add(exchange, acl, acl.get("resource_pattern_type"), "denied it to")
            return
        for result in answer.get("filter_results") or ():
            for acl in result.get("matching_acls") or ():
                if acl.get("permission_type") == _ALLOW and not acl.get("error_code"):
                    self._add(exchange, acl, acl.get("pattern_type"), "deleted an ACL that allowed it to")

    def _add(self, exchange: Exchange, acl: Body, pattern: object, did: str) -> None:
        if len(self._changes) >= MAX_CHANGES:
            return
        kind, name = KINDS.get(acl.get("resource_type", 0)), clipped(field_text(acl.get("resource_name")))
        ns = place_of(exchange)[1]
        text = f"{client_of(exchange)} {did} {clipped(field_text(acl.get('principal')))} at {clock(ns)}"
        if kind is not None and self._budget.admit(3 * ENTRY_BYTES + text_bytes(name, text)):
            self._changes.append(_Change(kind, name, pattern == _PREFIXED, text, ns))

    def about(self, what: Iterable[str], until_ns: int) -> list[str]:
        """The last changes up to ``until_ns`` that apply to any of these, as ``topic orders``."""
        of = list(what)
        texts = [one.text for one in self._changes if one.ns <= until_ns and any(map(one.concerns, of))]
        return list(dict.fromkeys(reversed(texts)))[:MAX_TOLD]
