"""Create a topic that takes no batch above 1000 bytes. Usage: prepare_small_topic.py BOOTSTRAP TOPIC"""

import sys

from confluent_kafka.admin import AdminClient, NewTopic

bootstrap, name = sys.argv[1:]
topic = NewTopic(name, 1, 1, config={"max.message.bytes": "1000"})
for future in AdminClient({"bootstrap.servers": bootstrap}).create_topics([topic]).values():
    future.result(30)
