"""Makes `fakes`, `services` and `support` importable from every test folder, and property tests repeatable in CI."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A machine under load must not fail a property test for its speed; in CI the same examples come every time.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
