"""How periods are named to a reader."""

import re

from nodes.contracts import Language


def period_label(period: str, language: Language) -> str:
    """A canonical period in words: 2023H1 is 2023年上半年, the first half of 2023; 2023Q3 is Q3 2023."""
    match = re.fullmatch(r"(\d{4})(?:H([12])|Q([1-4]))?", period)
    if not match:
        return period
    year, half, quarter = match.groups()
    if language == "zh":
        part = (
            f"{'上下'[int(half) - 1]}半年"
            if half
            else f"第{'一二三四'[int(quarter) - 1]}季度"
            if quarter
            else ""
        )
        return f"{year}年{part}"
    if half:
        return f"the {('first', 'second')[int(half) - 1]} half of {year}"
    return f"Q{quarter} {year}" if quarter else year
