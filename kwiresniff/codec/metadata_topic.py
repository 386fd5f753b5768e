"""The topic of the metadata log, which has the same name and the same id in every cluster (KIP-595)."""

from __future__ import annotations

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
