"""Take a producer id, so that the broker has fetched a block of them before the recording starts.

Usage: prepare_producer.py BOOTSTRAP
"""

import sys

from confluent_kafka import Producer

producer = Producer({"bootstrap.servers": sys.argv[1], "transactional.id": "prepare"})
producer.init_transactions(30)
