"""A traffic-sniffing protocol analyzer for Kafka."""

__version__ = "0.1.0"
