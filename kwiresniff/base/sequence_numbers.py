"""TCP sequence numbers, which count bytes in 32 bits and begin again at 0 (RFC 9293, section 3.4)."""

from __future__ import annotations

from typing import Final

#: All 32 bits: differences are taken modulo 2**32.
SEQ_MASK: Final = 0xFFFFFFFF
#: A difference of this and more is taken for one backwards.
SEQ_HALF: Final = 0x80000000
