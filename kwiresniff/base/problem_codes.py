"""Every code that a problem can have, how grave it is and what it says: a contract, as docs/output.md prints it.

A code never changes its meaning; a new one is a row here. ``error`` says that something which was on the wire is not in
the output, or not as it was sent; ``warning`` that something is in doubt or was given up on purpose; ``info`` that
all is well. A test holds the page, and every problem that is made, to this table.
"""

from __future__ import annotations

from typing import NamedTuple


class ProblemCode(NamedTuple):
    """One code; ``says`` is a phrase in Markdown."""

    code: str
    severity: str
    says: str


#: What belongs to no exchange.
OF_CAPTURES = (
    ProblemCode(
        "gap", "error",
        "bytes that are missing from the capture (`missing_bytes`), and those that could not be read behind them "
        "(`skipped_bytes`); `unacknowledged` says that the receiver did not get the missing ones either, so that they "
        "were lost on their way and not by the capture; what is missing from a TLS connection is told once for each "
        "direction, when it ends",
    ),
    ProblemCode(
        "mid_stream", "info",
        "bytes before the first message of a connection that is older than the capture (`skipped_bytes`)",
    ),
    ProblemCode("unrecognized", "error", "bytes that could not be read as messages (`skipped_bytes`)"),
    ProblemCode(
        "bad_length", "error",
        "a length that no message has, and the bytes that were skipped behind it (`skipped_bytes`)",
    ),
    ProblemCode("lost_request", "error", "a request of which not even the header is in the capture"),
    ProblemCode("lost_response", "error", "a response of which not even the header is in the capture"),
    ProblemCode("incomplete_request", "warning", "a request that had begun when its connection or the capture ended"),
    ProblemCode(
        "incomplete_response", "warning",
        "a response that had begun when its connection or the capture ended; `unacknowledged` says that the receiver "
        "acknowledged what is there of it and nothing more",
    ),
    ProblemCode(
        "other_end", "info",
        "a connection that `pipeline run --both-ends` tells from another host's capture (`kept`)",
    ),
    ProblemCode(
        "other_view", "info",
        "a connection that is in the capture once more under other addresses (`client`, `broker`; `counted` has those "
        "of the view that counts): before address translation (`via` is `nat`) or on the other leg of a proxy "
        "(`proxy`); each pair of addresses once",
    ),
    ProblemCode(
        "grown_file", "error",
        "bytes that came after `pipeline watch` had taken a file for finished; they are left out",
    ),
    ProblemCode(
        "snap_length", "warning",
        "packets that are cut at so many bytes (`snap_length`), once for each length, with the first of them; what "
        "that costs, `gap`, `lost_request` and `lost_response`, has `cut`",
    ),
    ProblemCode("capture_cut", "warning", "a file that ends in the middle of a packet"),
    ProblemCode("capture_damaged", "error", "a file that holds nonsense"),
    ProblemCode("capture_unreadable", "error", "a file that cannot be opened, or is no capture"),
    ProblemCode(
        "not_kafka", "info",
        "connections that carried something else (`protocol`), by server; where that answered Kafka on other "
        "connections, with `speaks_kafka` and `clients`, hosts and their connections",
    ),
    ProblemCode(
        "not_kafka_answer", "warning",
        "a server that answers Kafka with something else: `protocol` (`tls`, `http`, `text`, ...), `server`, the "
        "first `client`, the `connections` so far, and what a TLS `alert` says, or null",
    ),
    ProblemCode(
        "tls_not_answered", "warning",
        "a server that closes connections without an answer to a TLS hello: `server`, the first `client`, the "
        "`connections`; `speaks_kafka` when it answered Kafka without TLS on other connections",
    ),
    ProblemCode(
        "response_before_request", "warning",
        "`responses` that the capture has before their requests, with the first of them: `by_time` and by up to "
        "`ahead_ns`, or by the order of packets alone",
    ),
    ProblemCode(
        "stray_sasl_token", "warning",
        "a SASL token without a header (`mechanism`) where a request (`wanted`) has to come: SaslHandshake, or "
        "SaslAuthenticate after that",
    ),
    ProblemCode("not_decrypted", "warning", "TLS that could not be opened, and why"),
    ProblemCode("too_many_connections", "error", "the connections that were idle longest were ended to make room"),
    ProblemCode(
        "too_many_topic_names", "warning",
        "names of topic ids were forgotten, the first learned first (`names`)",
    ),
    ProblemCode(
        "too_much_held", "error",
        "frames being assembled, segments out of order and large unanswered requests of all connections were too "
        "much, and the biggest gave way (`bytes`); of a frame the first 64 KB stay",
    ),
    ProblemCode("too_many_clients", "warning", "the pipeline's tables `clients` and `audit` leave some out"),
    ProblemCode("too_many_topics", "warning", "the pipeline's tables leave some topics out"),
    ProblemCode("too_many_group_events", "warning", "the pipeline's table `groups` leaves the oldest events out"),
    ProblemCode("too_many_producers", "warning", "the pipeline's table `producers` leaves some out"),
    ProblemCode(
        "packets_dropped", "error",
        "live capture only: packets that could not be read in time (`packets`); of those, `only_written` are in "
        "the file of `-w`",
    ),
    ProblemCode("interface_down", "warning", "live capture only: the interface has gone, or come back"),
    ProblemCode(
        "plugin_failed", "warning",
        "a plugin that raised an exception, or cannot be loaded; what it would have said is missing",
    ),
    ProblemCode(
        "plugin_disabled", "warning", "a plugin that failed, or took too long, too often and is not asked any more"
    ),
    ProblemCode("plugin_too_slow", "warning", "a plugin that took too long for a value or an exchange, or for many"),
    ProblemCode("plugin_answer_too_large", "warning", "what a plugin answered was left out"),
    ProblemCode("source_failed", "error", "a source of the pipeline that could not be read to its end"),
)  # fmt: skip

#: What is wrong with the messages of an exchange; ``gap``, ``not_decrypted`` and plugins' failures occur here, too.
OF_MESSAGES = (
    ProblemCode(
        "response_before_request", "warning",
        "the response has a time before that of its request (`ahead_ns`), so the latency and its parts are null",
    ),
    ProblemCode("unknown_api", "error", "an API key that no release has"),
    ProblemCode("unknown_version", "error", "a version that no release has of its API, so that the body was not read"),
    ProblemCode("guessed_version", "warning", "a version newer than is known, read as the newest that is"),
    ProblemCode("bad_header", "error", "a header that is cut off, or not the one that was asked for"),
    ProblemCode("bad_client_id", "error", "a client id that does not fit into its frame, or runs on into the body"),
    ProblemCode("truncated", "error", "the message ends too early"),
    ProblemCode("trailing_bytes", "warning", "bytes that follow the end of the message"),
    ProblemCode("bad_length", "error", "a length, or a null, that a field may not have"),
    ProblemCode("bad_array_count", "error", "an array that counts more entries than there is room for"),
    ProblemCode("bad_varint", "error", "a varint that runs past its largest size"),
    ProblemCode("bad_struct_mark", "error", "neither there nor null: the mark before a structure that may be null"),
    ProblemCode("bad_tag_size", "error", "a tagged field that does not take the bytes it says"),
    ProblemCode("invalid_utf8", "error", "text that is not UTF-8"),
    ProblemCode("too_many_fields", "warning", "more values than are read of one message"),
    ProblemCode("embedded_undecoded", "warning", "bytes that should hold a message, and do not"),
    ProblemCode(
        "payload_does_not_fit", "warning",
        "keys or values (`part`) that name a `schema` and do not fit it, as a `plugin` says: `topic`, `partition`, the "
        "`record_offset` of the first, and how many `records`; with `--redact`, `schema` is null",
    ),
    ProblemCode("bad_crc", "error", "a batch or message whose checksum does not match"),
    ProblemCode("unknown_magic", "error", "a batch of a format that no release has"),
    ProblemCode("unknown_codec", "error", "a compression that no release has"),
    ProblemCode("bad_batch_length", "error", "a batch whose length cannot be"),
    ProblemCode("bad_compressed_data", "error", "compressed records that cannot be decompressed"),
    ProblemCode("decompressed_too_large", "warning", "records that decompress to more than is taken"),
    ProblemCode("bad_record", "error", "a record that does not fit into its batch"),
    ProblemCode("bad_records_count", "error", "a batch that holds more or fewer records than it says"),
    ProblemCode("nested_too_deep", "error", "compressed message sets inside each other, more than are opened"),
    ProblemCode("too_many_batches", "warning", "more batches than are read of one message"),
    ProblemCode("too_many_records", "warning", "more records than are read of one message"),
)  # fmt: skip

#: All codes there are. One that stands in both tables says what its place says.
CODES = frozenset(row.code for row in (*OF_CAPTURES, *OF_MESSAGES))
