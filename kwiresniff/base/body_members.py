"""Members that a decoded body has beside the fields of its definition, and what a batch says that is not all there.

They are part of the output (docs/output.md) and never change.
"""

from __future__ import annotations

from typing import Final

#: Tagged fields that no definition has, by tag number.
UNKNOWN_TAGS: Final = "_tagged_fields"
#: Behind the name of a bytes field: what those bytes hold.
DECODED: Final = "_decoded"
#: A batch at the end of a record set of which the rest was not sent (``truncated`` in a body).
CUT_SHORT: Final = "cut short"
