"""Exchanges into results: filters, statistics, latency distributions, names in bodies, redaction."""
