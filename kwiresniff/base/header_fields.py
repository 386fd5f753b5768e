"""The first fields of requests and responses, as code that reads every frame unpacks them.

A request begins with api_key, api_version and correlation_id and, from header version 1 on, the INT16 length of its
client id; a response begins with its correlation_id (protocol guide, "Request Header", "Response Header"). All are
big-endian, and each function takes a frame without its 4-byte length and, if not 0, an offset in it.
"""

from __future__ import annotations

from struct import Struct

#: api_key, api_version, correlation_id, length of the client id (-1 for null).
unpack_request_header = Struct(">hhih").unpack_from
#: api_key, api_version, correlation_id.
unpack_request_header_v0 = Struct(">hhi").unpack_from
pack_request_header_v0 = Struct(">hhi").pack
#: The correlation_id of a response, as a tuple of one.
unpack_correlation_id = Struct(">i").unpack_from
pack_correlation_id = Struct(">i").pack
