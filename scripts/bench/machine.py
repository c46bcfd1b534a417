"""On what a figure was measured: a figure without it says nothing."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version


def about(packages: Sequence[str]) -> str:
    """One line: system, cores, load, Python and the versions of these packages that are installed."""
    known = []
    for package in packages:
        try:
            known.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        f"Python {platform.python_version()}; {', '.join(known)}."
    )
