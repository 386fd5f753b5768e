"""What is recorded: one entry per capture, in the order of the manifest."""

from __future__ import annotations

from captures.recipes.codec import eras_clients, eras_groups, eras_kraft, eras_upgrades, eras_zookeeper, scenarios
from captures.recipes.session import authentication, encryption
from captures.recipes.shared.scenario import Scenario

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
