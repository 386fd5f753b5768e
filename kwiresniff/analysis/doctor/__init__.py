"""What is wrong with this Kafka, as far as the wire can tell: findings, the worst first, with evidence and a remedy."""

from kwiresniff.analysis.doctor.examine import Doctor, RuleMaker
from kwiresniff.analysis.doctor.rule import SEVERITIES, Context, Rule
from kwiresniff.results.findings import Finding

__all__ = ["SEVERITIES", "Context", "Doctor", "Finding", "Rule", "RuleMaker"]
