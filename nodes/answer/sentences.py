"""Where a sentence ends, in Chinese and English, for whole texts and for a stream of pieces.

Joined again, the sentences are the text, character by character: closing quotes, citations and white space
belong to the sentence before them. 3.5, No. 7, U.S. and list numbers end no sentence.
"""

import re
from collections.abc import Iterator

# A sentence may stop at a lesser mark once it has grown this long, so that a stream keeps flowing.
LONG = 600

_CLOSERS = "”’」』）)】》*"
_CITATION = r"(?:[\[［【]\s*[CcＣｃ][^\[\]［］【】\n]{0,24}[\]］】])"
# What still belongs to the sentence after its end mark.
_TAIL = re.compile(rf"[。！？!?…]*(?:[{_CLOSERS}]|[ \t]*{_CITATION}[。.]?)*\s*")
# A tail that more text could still lengthen: it reaches the end, or an opened bracket may become a citation.
_OPEN_TAIL = re.compile(r"[\[［【][^\[\]［］【】\n]{0,26}$")
_ABBREVIATION = re.compile(
    r"(?:(?<![A-Za-z])(?:No|Nos|Art|Sec|Mr|Mrs|Ms|Dr|Prof|Inc|Ltd|Co|Corp|St|vs|etc|approx|Fig|e\.g|i\.e|cf|Jan|Feb|Mar|Apr|Jun"
    r"|Jul|Aug|Sept|Sep|Oct|Nov|Dec)|(?<![A-Za-z])[A-Za-z]|(?:^|\n)[ \t]*\d{1,3})$",
    re.IGNORECASE,
)
_END = re.compile(r"[。！？!?]|\.(?=\s|[”’\"')\]]|$)|\n")
_LESSER_END = re.compile(r"[；;，,](?!\d)")
# A line that goes on with these after a number would change what the number says.
_GOES_ON = re.compile(r"\s*[\d.,%‰万亿千百十元年月日个点]")


def split_sentences(text: str) -> list[str]:
    """The sentences of `text` in order; joined they are `text`."""
    buffer = SentenceBuffer()
    return [*buffer.feed(text), *buffer.flush()]


class SentenceBuffer:
    """Sentences out of a stream of pieces, each as soon as it is certain where it ends."""

    def __init__(self) -> None:
        self._text = ""
        self._scanned = 0  # no end of a sentence lies before this place

    def feed(self, piece: str) -> list[str]:
        """The sentences that `piece` completes."""
        self._text += piece
        return list(self._complete(is_last=False))

    def flush(self) -> list[str]:
        """What is left at the end of the stream: its sentences, the last one perhaps without an end mark."""
        rest = list(self._complete(is_last=True))
        left, self._text, self._scanned = self._text, "", 0
        return [*rest, left] if left else rest

    def _complete(self, *, is_last: bool) -> Iterator[str]:
        while (end := self._next_end(is_last=is_last)) is not None:
            sentence, self._text = self._text[:end], self._text[end:]
            self._scanned = 0
            yield sentence

    def _next_end(self, *, is_last: bool) -> int | None:
        end, limit = self._mark_end(is_last=is_last)
        lesser = _LESSER_END.search(self._text, LONG, limit - 1) if limit > LONG else None
        return lesser.end() if lesser else end

    def _mark_end(self, *, is_last: bool) -> tuple[int | None, int]:
        """(where the first sentence ends by its end mark, how far the text is known to hold no other end)."""
        for match in _END.finditer(self._text, self._scanned):
            end = _end_of(self._text, match)
            if end is None or not self._text[:end].strip():
                continue
            if is_last or not _is_open(self._text, end):
                return end, match.start()
            self._scanned = match.start()
            return None, match.start()
        # An end mark needs the character after it.
        self._scanned = max(0, len(self._text) - 1)
        return None, len(self._text)


def _end_of(text: str, match: re.Match[str]) -> int | None:
    """Where the sentence that `match` may end does end, or None when it is no end."""
    at = match.start()
    before = text[:at]
    if match.group() == "." and _ABBREVIATION.search(before[-24:]):
        return None
    tail = _TAIL.match(text, _after_quote(text, match.end()))
    end = tail.end() if tail else match.end()
    if match.group() == "\n" and before.rstrip()[-1:].isdigit() and _GOES_ON.match(text, at):
        return None
    return end


def _is_open(text: str, end: int) -> bool:
    return end >= len(text) or bool(_OPEN_TAIL.match(text, end))


def _after_quote(text: str, at: int) -> int:
    """Past a straight quote that closes one opened before; a straight quote does not say which it is."""
    is_closing = text[at : at + 1] in ('"', "'") and text.count(text[at], 0, at) % 2 == 1
    return at + 1 if is_closing else at
