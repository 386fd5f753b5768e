"""The contents of bytes fields: group metadata, records of internal topics, enveloped requests, metrics.

Everything here works on a ``StructView``, which is a decoded body or a tree of nodes, and puts what it finds beside the
bytes; bytes of unknown content are left as they are. Each format is one module, which says itself where it is found
(``openers``): a message that none of them names costs nothing.
"""

from kwiresniff.codec.embedded.envelope import ANSWER, forwarded, forwarded_answer
from kwiresniff.codec.embedded.groups import open_assignment, open_group_record, open_subscription
from kwiresniff.codec.embedded.internal_topics import INTERNAL_TOPICS, open_batches
from kwiresniff.codec.embedded.openers import collect
from kwiresniff.codec.embedded.struct_view import BodyView, StructView
from kwiresniff.codec.embedded.telemetry import open_metrics

#: What opens the fields of each message, and whether it is worth while to try, by API and direction.
OPENERS, QUICK_LOOKS = collect(__name__, __path__)

__all__ = [
    "ANSWER",
    "INTERNAL_TOPICS",
    "OPENERS",
    "QUICK_LOOKS",
    "BodyView",
    "StructView",
    "forwarded",
    "forwarded_answer",
    "open_assignment",
    "open_batches",
    "open_group_record",
    "open_metrics",
    "open_subscription",
]
