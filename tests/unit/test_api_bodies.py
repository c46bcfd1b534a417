"""The patterns of the document say what the service takes for blank."""

import re
import sys

from api.bodies import BLANKS, TEXT


def test_the_document_knows_every_blank() -> None:
    characters = [chr(code) for code in range(sys.maxunicode + 1)]
    assert re.findall(f"[{BLANKS}]", "".join(characters)) == [one for one in characters if one.isspace()]


def test_a_text_is_neither_blank_nor_has_nul() -> None:
    fits = re.compile(TEXT["pattern"]).search
    assert all(map(fits, ("a", " a\u00a0", "\n有\n", "\u200b")))
    assert not any(map(fits, ("", " \u3000\u00a0\x1c", "a\x00", "\x00a")))
