"""Quick scans: passing over ordinary bodies, generated from the steps of a scanner for Python that is not compiled.

Interpreted, ``kwiresniff.codec.body_scanner`` takes three times as long to follow its steps as a function takes that
was made of them. What such a function does not know how to pass over it leaves to the steps.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from kwiresniff.base.light_typing import Any
from kwiresniff.codec.codegen import SourceCode
from kwiresniff.codec.field_layout import LARGE_BYTES
from kwiresniff.codec.scan_steps import ARRAY, JUMP, OPTIONAL, RECORDS, SHORT, TAGS, TEXT, VALUE, VARINT, ScanStep

#: ``found = scan(frame, body_offset)``: what a scanner finds in the body; None for one that it should pass over itself,
#: because it is not as the definition says, has tagged fields, or is large.
QuickScan = Callable[[bytes, int], "list[tuple[str, Any]] | None"]


def compile_quick_scan(steps: list[ScanStep]) -> QuickScan:
    """Make the quick scan that follows ``steps``."""
    return _ScanSource().compile(steps)


class _ScanSource(SourceCode):
    """Source with three locals: ``b`` the frame, ``p`` the position, ``found``.

    What has a fixed size gathers in a run, which is read by one ``unpack_from``; that refuses to read past the end, and
    what is jumped over past the end is noticed when the function returns.
    """

    def __init__(self) -> None:
        unfit = (IndexError, struct.error, UnicodeDecodeError)
        super().__init__({"__builtins__": {"len": len}, "UNFIT": unfit})
        self._run: list[str] = []  # codes of a ``struct`` format
        self._size = 0  # of them, in bytes
        self._names: list[str] = []
        self._checks: list[str] = []  # lines that look at the values once they are read

    def compile(self, steps: list[ScanStep]) -> QuickScan:
        with self.block("def scan(b, p):"):
            self.line("end = len(b); found = []")
            self.line(f"if end - p > {LARGE_BYTES}: return")
            with self.block("try:"):
                self.follow(steps)
                self.flush()
                self.line("if p <= end: return found")
            self.line("except UNFIT: pass")
        return self.function("scan", "quick scan")

    def follow(self, steps: list[ScanStep]) -> None:
        """Pass over what the steps say; the run may go on behind them."""
        for step in steps:
            if step.kind == JUMP:
                self._run.append(f"{step.size}x")
                self._size += step.size
            elif step.kind == VALUE:
                self.value(step)
            elif step.kind == TAGS:
                self._checks.append(f"if {self.take('B', 1)}: return")
            elif step.kind == OPTIONAL:
                self.optional(step)
            else:
                self.sized(step)

    def take(self, code: str, size: int) -> str:
        """Add a value to the run; the name returned holds it after the next ``flush``."""
        self._names.append(self.fresh())
        self._run.append(code)
        self._size += size
        return self._names[-1]

    def flush(self) -> None:
        """Read the run, and move the position behind it."""
        if len(self._names) == 1 and self._run[-1] == "B":  # a byte is cheaper by index
            self.line(f"{self._names[0]} = b[p + {self._size - 1}]; p += {self._size}")
        elif self._names:
            unpack = self.struct_method(f">{''.join(self._run)}", "unpack_from")
            self.line(f"{', '.join(self._names)}, = {unpack}(b, p); p += {self._size}")
        elif self._size:
            self.line(f"p += {self._size}")
        for line in self._checks:
            self.line(line)
        self._run, self._size, self._names, self._checks = [], 0, [], []

    def value(self, step: ScanStep) -> None:
        """A value of fixed size: reported unless it is zero."""
        name = self.take(f"{step.size}s", step.size)
        then = "return"
        if step.read is not None:
            read = self.fresh("read")
            self.namespace[read] = step.read
            then = f"found.append(({step.name!r}, {read}({name})))"
        self._checks.append(f"if {name} != {bytes(step.size)!r}: {then}")

    def optional(self, step: ScanStep) -> None:
        mark = self.take("B", 1)
        self.flush()
        with self.block(f"if {mark} == 1:"):
            self.follow(step.inside)
            self.flush()
        self.line(f"elif {mark} != {step.null}: return")

    def sized(self, step: ScanStep) -> None:
        """What has a length or a count: nothing of it, or so many bytes or elements."""
        if step.size == VARINT:
            count = self.take("B", 1)
            self.flush()
            with self.block(f"if {count} > 127:"):
                more = self.fresh()
                self.line(f"{more} = b[p]; p += 1")
                self.line(f"if {more} > 127: return")
                self.line(f"{count} += ({more} - 1) * 128")
            self.line(f"{count} -= 1")
        else:
            count = self.take("h", 2) if step.size == SHORT else self.take("i", 4)
            self.flush()
        with self.block(f"if {count} > 0:"):
            if step.kind == ARRAY:
                self.elements(step, count)
            else:
                self.content(step, count)
        self.line(f"elif {count} < {-1 if step.nullable else 0}: return")

    def elements(self, step: ScanStep, count: str) -> None:
        self.line(f"if {count} * {step.least} > end - p: return")
        inside = step.inside
        if len(inside) == 1 and inside[0].kind == JUMP:
            self.line(f"p += {count} * {inside[0].size}")
            return
        with self.block(f"while {count}:"):
            self.line(f"{count} -= 1")
            self.follow(inside)
            self.flush()

    def content(self, step: ScanStep, length: str) -> None:
        """A string, bytes or a record set of a ``length`` that is not zero."""
        value = f"b[p:p + {length}]"
        if step.kind == TEXT:
            value += ".decode()"
            if not step.name:
                self.line(value)
        elif step.kind == RECORDS:
            value = length
        if step.name:
            self.line(f"found.append(({step.name!r}, {value}))")
        self.line(f"p += {length}")
