"""Text that compression halves at most, so that a large value stays large on its way to the server."""

import random


def noise(word: str, size: int) -> str:
    """`size` hexadecimal digits, the same for the same word."""
    return random.Random(word).randbytes((size + 1) // 2).hex()[:size]
