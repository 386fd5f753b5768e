"""What is recorded: one entry per capture, in the order of the manifest."""

from __future__ import annotations

import scenarios
from scenarios import Scenario

SCENARIOS: tuple[Scenario, ...] = scenarios.SCENARIOS
