"""Values to bytes for any Kafka message and record set, from the same definitions as the decoders: their inverse."""

from tests.support.encoding.compressing import compress
from tests.support.encoding.errors import EncodeError
from tests.support.encoding.messages import Encoder, compile_encoder, data_encoder, encoder
from tests.support.encoding.record_sets import encode_batch, encode_record_set

__all__ = [
    "EncodeError",
    "Encoder",
    "compile_encoder",
    "compress",
    "data_encoder",
    "encode_batch",
    "encode_record_set",
    "encoder",
]
