"""Which examples hypothesis tries: the same each time, so that none fails by chance; new ones with --long."""

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers


def choose_examples(*, is_long: bool) -> None:
    """For every test of this process. Neither a slow machine nor the tests before change anything."""
    settings.register_profile(
        "chosen",
        derandomize=not is_long,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("chosen")
    if not is_long:
        # It would try constants of our modules too: of those that happen to have been loaded by then.
        providers._get_local_constants = lambda: providers._local_constants
