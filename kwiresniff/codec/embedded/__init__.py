"""What is inside bytes fields: group metadata, records of internal topics, enveloped requests, metrics.

Everything here works on a ``Holder``, which is a decoded body or a tree of nodes, and puts what it finds beside the
bytes; bytes of unknown content are left as they are.
"""

from kwiresniff.codec.embedded.envelope import open_enveloped_request, open_enveloped_response
from kwiresniff.codec.embedded.groups import open_assignment, open_group_record, open_subscription
from kwiresniff.codec.embedded.holder import UNDECODED, BodyHolder, Holder, NodeHolder
from kwiresniff.codec.embedded.logs import INTERNAL_TOPICS, open_batches
from kwiresniff.codec.embedded.telemetry import open_metrics

__all__ = [
    "INTERNAL_TOPICS",
    "UNDECODED",
    "BodyHolder",
    "Holder",
    "NodeHolder",
    "open_assignment",
    "open_batches",
    "open_enveloped_request",
    "open_enveloped_response",
    "open_group_record",
    "open_metrics",
    "open_subscription",
]
