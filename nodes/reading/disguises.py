"""What a text may say under a disguise: letters set apart, digits for letters, turned round, encoded.

Each reading is one more form to screen. None replaces the text, so a harmless one is only ever read as well.
"""

import base64
import binascii
import codecs
import re
from collections.abc import Iterator

from nodes.reading.folding import has_chinese

MOST_CHARACTERS = 4000  # of an encoded part; a question is no longer


def readings(folded: str) -> Iterator[str]:
    """Other readings of a folded text, not squeezed; those that cannot be one are left out."""
    yield _SET_APART_ZH.sub("", folded)
    yield _SPLIT_WORD.sub("", folded)
    yield _MIXED_WORD.sub(lambda word: word[0].translate(_DIGIT_LETTERS), folded)
    if not has_chinese(folded):
        yield folded[::-1]
        yield codecs.encode(folded, "rot13")


def decoded(text: str) -> Iterator[str]:
    """What base64 in the text, as it was written, says."""
    for found in _BASE64.finditer(text[:MOST_CHARACTERS]):
        part = found[0].rstrip("=")
        try:
            yield base64.b64decode(part + "=" * (-len(part) % 4), validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            continue


_SET_APART_ZH = re.compile(
    r"(?<=[\u4e00-\u9fff])[\s*_.\-·•~^|/\\,、「」『』【】\[\]()\"'“”‘’+]+(?=[\u4e00-\u9fff])"
)
_SPLIT_WORD = re.compile(r"(?<=[a-z])(?:-|['\"] ?\+ ?['\"])(?=[a-z])")
_MIXED_WORD = re.compile(r"(?<![^\W_])(?=[a-z0-9@$!]*[a-z])(?=[a-z0-9@$!]*[0-9@$!])[a-z0-9@$!]{3,}")
_DIGIT_LETTERS = str.maketrans("013457@$!", "oieastasi")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{16,}={0,2}")
