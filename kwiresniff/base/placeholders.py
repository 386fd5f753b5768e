"""Texts that stand in tables and lines where there is no name."""

from __future__ import annotations

from typing import Final

#: A client without a client id.
NO_CLIENT_ID: Final = "(no client id)"
#: A response without its request, so without an API.
NO_REQUEST: Final = "(request missing)"
#: An exchange that names no topic.
NO_TOPIC: Final = "(no topic)"
#: The row that takes in all those for which there is no row of their own.
OTHERS: Final = "(others)"
