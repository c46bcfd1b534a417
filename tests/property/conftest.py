"""No test fails because a machine was slow: hypothesis would time each example."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
