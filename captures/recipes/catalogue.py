"""What is recorded: one entry per capture, in the order of the manifest."""

from __future__ import annotations

import authentication
import encryption
import eras_clients
import eras_groups
import eras_kraft
import eras_upgrades
import eras_zookeeper
import scenarios
from scenario import Scenario

SCENARIOS: tuple[Scenario, ...] = (
    *scenarios.SCENARIOS,
    *authentication.SCENARIOS,
    *encryption.SCENARIOS,
    *eras_zookeeper.SCENARIOS,
    *eras_clients.SCENARIOS,
    *eras_upgrades.SCENARIOS,
    *eras_kraft.SCENARIOS,
    *eras_groups.SCENARIOS,
)
