"""What a conversation is called until its owner says otherwise."""

import regex  # type: ignore[import-untyped]  # it ships no type information

TITLE_CHARACTERS = 80
_GRAPHEME = regex.compile(r"\X")


def title_of(question: str, most: int = TITLE_CHARACTERS) -> str:
    """The beginning of the first question on one line, cut between two graphemes at `most` code points.

    A first grapheme that alone is longer is left out, so the title may be empty.
    """
    line = " ".join(question.split())
    if len(line) <= most:
        return line
    end = 0
    for found in _GRAPHEME.finditer(line):
        if found.end() > most:
            break
        end = found.end()
    return line[:end].rstrip()
