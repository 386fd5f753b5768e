"""librdkafka: a transaction that commits and one that aborts. Usage: librdkafka_transactions.py BOOTSTRAP TOPIC"""

import sys

from confluent_kafka import Producer

bootstrap, topic = sys.argv[1:]
producer = Producer({"bootstrap.servers": bootstrap, "client.id": "ledger", "transactional.id": "ledger-1"})
producer.init_transactions(30)
producer.begin_transaction()
producer.produce(topic, "debit", "account-1")
producer.produce(topic, "credit", "account-2")
producer.commit_transaction(30)
producer.begin_transaction()
producer.produce(topic, "second thoughts", "account-1")
producer.flush(30)
producer.abort_transaction(30)
