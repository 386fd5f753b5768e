"""Bodies turned from bytes into JSON text, rows of a tree or digests directly, without dicts in between.

The decoders make dicts that everybody can use. A command that only writes them out again as JSON can have the text at
a tenth of the cost, as long as these modules are compiled: they are written for mypyc, byte by byte with machine
integers, and are slower than the decoders without it. The text is that of the decoded body, byte for byte, or none at
all: whatever is unusual (an error code, a tagged field, a wrong CRC, a body that does not fit) is left to the decoders
and to those who look into what they give.
"""

from __future__ import annotations
