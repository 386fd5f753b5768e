"""Exchanges into answers: filters, statistics, latency distributions, names in bodies, redaction."""
