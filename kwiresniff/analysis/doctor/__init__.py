"""What is wrong with this Kafka, as far as the wire can tell: findings, the worst first, with evidence and a remedy."""

from kwiresniff.analysis.doctor.examine import SEVERITIES, Doctor

__all__ = ["SEVERITIES", "Doctor"]
