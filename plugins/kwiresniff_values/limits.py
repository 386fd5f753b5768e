"""How much of what is inside a record, and of what describes it, is looked at. docs/limits.md has a row for each."""

from __future__ import annotations

#: Longer keys and values are left as they are: everything below is proportional to it.
MAX_PAYLOAD_BYTES = 1024 * 1024
#: Of MessagePack and CBOR, whose libraries make everything before it can be counted: a byte is a list.
MAX_PACKED_BYTES = 256 * 1024
#: Levels of one value. The answers of plugins may have as many.
MAX_DEPTH = 64
#: Values in one key or value; an array of nothing takes no bytes at all in Avro. So many are read well within the
#: processor time that a plugin has for a call: who writes records must not be able to have it switched off.
MAX_VALUES = 25_000
#: Bytes of one Avro decimal: turning it into digits takes the square of its length.
MAX_DECIMAL_BYTES = 1024
#: Bits of an integer that is written as decimal digits; longer ones are written as hexadecimal.
MAX_DECIMAL_BITS = 4096
#: Bytes of one schema, wherever it comes from.
MAX_SCHEMA_BYTES = 1024 * 1024
#: Levels of one schema; a record inside a record takes three.
MAX_SCHEMA_DEPTH = 200
#: Schemas that one schema refers to, directly or not.
MAX_REFERENCES = 100
#: Schemas that are kept ready for use; the oldest is prepared again when it is needed.
MAX_PREPARED = 1_000
#: Bytes of the schemas that a capture has taught.
MAX_LEARNT_BYTES = 16 * 1024 * 1024
#: Keywords of JSON Schema evaluated for one value; one that leads to other schemas counts as five, and twenty
#: items of one as another. References inside
#: references double them at every level.
MAX_KEYWORDS = 20_000
#: Files of a folder of schemas.
MAX_FILES = 10_000
#: Trace ids noted of one exchange; a person reads them.
MAX_TRACES = 20
#: Seconds a registry or the compiler of .proto files may take.
REGISTRY_TIMEOUT_S = 5
PROTOC_TIMEOUT_S = 20
