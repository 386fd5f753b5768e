"""Exchanges to results: filters, statistics, clients, topics, groups, producers, audit, doctor, redaction."""
