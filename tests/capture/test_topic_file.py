"""``--topics FILE``: names of topic ids from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwiresniff.capture.topic_file import read_topic_file
from kwiresniff.errors import CaptureError

ID, OTHER = "2S4L3dYTSVynQUXXnGGTkg", "AAAAAAAAAAAAAAAAAAAAAg"
#: As kafka-topics.sh of Kafka 4 prints it.
DESCRIBED = f"""Topic: orders\tTopicId: {ID}\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: segment.bytes=1073741824
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: 
Topic: bills\tTopicId: {OTHER}\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: 
"""  # noqa: W291 - so it is printed


@pytest.mark.parametrize(
    "text",
    [
        DESCRIBED,
        f"orders {ID}\nbills {OTHER}\n",
        f"# id,name\n{ID},orders\n{OTHER},bills\n",
        f"orders\t{ID}\r\nbills\t{OTHER}",
    ],
    ids=["described", "name and id", "id and name", "tabs"],
)
def test_names_are_read_in_every_form(tmp_path: Path, text: str) -> None:
    """Both topics, by their ids."""
    path = tmp_path / "topics.txt"
    path.write_text(text)
    assert read_topic_file(str(path)) == {ID: "orders", OTHER: "bills"}


def test_a_file_without_a_name_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    """So is one that is not there."""
    path = tmp_path / "topics.txt"
    path.write_text("orders 7\n\n")
    with pytest.raises(CaptureError, match="kafka-topics"):
        read_topic_file(str(path))
    with pytest.raises(CaptureError, match="No such file"):
        read_topic_file(str(tmp_path / "none"))
