"""Which contract versions are spoken here. Another major is refused, never read as if it were ours."""

import re
from dataclasses import dataclass
from typing import Literal

_PRE = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"  # a number of it has no zero before it
_SEMVER = re.compile(
    r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})"
    rf"(?:-{_PRE}(?:\.{_PRE})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
Standing = Literal["known", "newer_minor", "other_major"]


@dataclass(frozen=True)
class Version:
    """Major and minor decide what is accepted; patch, pre-release and build do not."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def supported(self) -> str:
        """The range that a speaker of this version accepts."""
        return f">={self.major}.0.0 <{self.major + 1}.0.0"


SPOKEN = Version(1, 0, 0)


def read_version(text: str) -> Version | None:
    """None for anything that is not a semantic version ("v1.0.0" and "1.0" are none)."""
    found = _SEMVER.fullmatch(text)
    return Version(int(found[1]), int(found[2]), int(found[3])) if found else None


def standing_of(version: Version, spoken: Version = SPOKEN) -> Standing:
    """A newer minor may carry fields that are not known here; the same or an older one may not."""
    if version.major != spoken.major:
        return "other_major"
    return "newer_minor" if version.minor > spoken.minor else "known"
