"""Property tests try the same examples on every machine and on every run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=False,
)
settings.register_profile("thorough", settings.get_profile("deterministic"), max_examples=2000)
settings.load_profile("deterministic")
