"""Values to bytes for any Kafka message and record set, from the same definitions as the decoders: their inverse."""

from tests.support.encoding.compressing import compress
from tests.support.encoding.messages import Encoder, data_encoder, encode, encoder
from tests.support.encoding.record_sets import encode_batch, encode_record_set

__all__ = [
    "Encoder",
    "compress",
    "data_encoder",
    "encode",
    "encode_batch",
    "encode_record_set",
    "encoder",
]
