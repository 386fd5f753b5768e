"""Ids and names that are the same in every Kafka cluster."""

from __future__ import annotations

from typing import Final

#: The all-zero UUID as Kafka prints UUIDs, in base64; it stands for "no id".
ZERO_UUID: Final = "AAAAAAAAAAAAAAAAAAAAAA"

#: The topic of the metadata log, which has the same name and the same id everywhere (KIP-595).
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
