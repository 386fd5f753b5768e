"""What is wrong with this Kafka, as far as the wire can tell: findings, the worst first, with evidence and a remedy.

In three layers: observers say what was seen, causes what may explain it, the judgement which of them is told.
"""

from kwiresniff.analysis.doctor.cause import SEVERITIES, Cause, Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.doctors import Doctors
from kwiresniff.analysis.doctor.examine import Doctor, Maker
from kwiresniff.analysis.doctor.judgement import Judgement
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver, Observer
from kwiresniff.results.findings import Finding

__all__ = [
    "SEVERITIES", "Cause", "Context", "CountingObserver", "Doctor", "Doctors", "Explanation", "Finding", "Harm",
    "Judgement", "Maker", "Observation", "Observed", "Observer", "cause", "told",
]  # fmt: skip
