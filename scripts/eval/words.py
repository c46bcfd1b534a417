"""Which words of two texts say the same: content words, folded, without those that only shape a question."""

from nodes.retrieve.wording import Wording


class ContentWords:
    """The words that the search would ask for; of a Chinese one also its pairs of characters."""

    def __init__(self) -> None:
        self._wording = Wording()

    def of(self, text: str) -> frozenset[str]:
        return frozenset(self._wording.asked(self._wording.fold(text)))

    def added(self, text: str, rewrite: str) -> frozenset[str]:
        """What the rewrite says beyond the text. A word held inside the text in another form is not new."""
        return self.of(rewrite) - frozenset(self._wording.words(self._wording.fold(text)))

    def share_said(self, wanted: frozenset[str], text: str) -> float:
        """How much of `wanted` stands in the text; 1 where nothing is wanted."""
        folded = self._wording.fold(text)
        said = frozenset(self._wording.words(folded))
        held = [word for word in wanted if word in said or (not word.isascii() and word in folded)]
        return len(held) / len(wanted) if wanted else 1.0
