"""The embedded search: BM25 over words and character pairs, and the cut below which nothing counts as found.

It only proposes candidates. What a caller may be shown is decided in `exits`.
"""

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

from nodes.contracts import Caller
from nodes.retrieve.access import may_see
from nodes.retrieve.documents import KnowledgeStore, Snapshot, current_keys

CANDIDATES = 50
# A passage counts as found when it holds at least this share of what the question asks about (see `coverage`),
MIN_COVERAGE = 0.45
# and at least this share of the best passage's score.
MIN_SCORE_SHARE = 0.35

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_HAN_RUN = re.compile(f"[{_HAN}]+")
_HAS_HAN = re.compile(f"[{_HAN}]")
# Words that shape a question and say nothing of its subject.
_CHINESE_STOP_WORDS = frozenset(
    "的 了 吗 呢 吧 啊 呀 嘛 么 是 在 有 和 与 及 或 或者 以及 而 但 但是 也 都 还 又 就 才 再 很 太 更 最 把 被 让 给 对 对于 关于 "
    "从 到 向 往 由 于 以 为 为了 因为 所以 如果 那么 那 这 哪 它 他 她 我 你 您 咱 我们 你们 他们 咱们 自己 大家 请 请问 问 想 想问 "
    "知道 告诉 一下 说 说明 介绍 解释 什么 什么样 啥 哪些 哪个 哪里 哪儿 哪种 哪 谁 怎么 怎么办 怎样 怎么样 如何 多少 几 几个 多 "
    "多久 多长 多大 何时 何 为什么 为何 是否 是不是 有没有 能不能 可不可以 可以 能 能够 能否 可否 可 会 要 需要 应该 应 该 得 必须 "
    "时候 时 之 其 其中 此 该 这个 那个 这些 那些 个 些 一 一个 一些 上 下 里 中 内 前 后 没有 没 不 不能 别 还是 "
    "进行 具体 相关 有关 情况 目前 现在 规定 要求 内容 属于 即 等 所 者 地 着 过 去 来 做 用 拿 叫 算 呗".split()
)
_ENGLISH_STOP_WORDS = frozenset(
    "a an the and or but of in on at to for from by with about as into is are was were be been being am do does did "
    "done can could may might must shall should will would have has had i you he she it we they me him her us them "
    "my your his its our their this that these those there here what which who whom whose when where why how much "
    "many long often if then than so not no any some all each every more most other please tell explain describe "
    "say know get need per s t".split()
)


class Folding:
    """Brings spellings of the same text together: width, case, traditional characters, English plurals."""

    @cached_property
    def _simplify(self) -> Any:
        from opencc import OpenCC

        return OpenCC("t2s")

    def fold(self, text: str) -> str:
        folded = unicodedata.normalize("NFKC", text).casefold()
        return str(self._simplify.convert(folded)) if _HAS_HAN.search(folded) else folded

    def words(self, folded: str) -> list[str]:
        """Words in order, without punctuation; English ones in the singular."""
        import rjieba

        words = (word.strip() for word in rjieba.cut(folded))
        return [_singular(word) for word in words if any(character.isalnum() for character in word)]

    def terms(self, folded: str) -> list[str]:
        """What is indexed and searched: words, and every pair of neighbouring Chinese characters."""
        runs = _HAN_RUN.findall(folded)
        pairs = [run[at : at + 2] for run in runs for at in range(len(run) - 1)]
        return self.words(folded) + pairs


def _singular(word: str) -> str:
    if not word.isascii() or len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]


def content_words(words: Sequence[str]) -> list[str]:
    """The words of a question that say what it is about, each once, in order."""
    stop = _CHINESE_STOP_WORDS | _ENGLISH_STOP_WORDS
    return list(dict.fromkeys(word for word in words if word not in stop))


@dataclass(frozen=True)
class Hit:
    """A chunk that answers to a question: its position in the snapshot, and its BM25 score."""

    position: int
    score: float


class LexicalIndex:
    """One knowledge version, ready to be searched. Immutable, so threads share it without locks."""

    def __init__(self, snapshot: Snapshot, folding: Folding) -> None:
        import bm25s

        self.snapshot = snapshot
        self._folding = folding
        self._bodies = [
            folding.fold(f"{snapshot.records[record].title}\n{text}") for record, _, text in snapshot.chunks
        ]
        terms = [folding.terms(body) for body in self._bodies]
        self._terms = [frozenset(one) for one in terms]
        self._holding = Counter(term for one in self._terms for term in one)
        self._bm25 = bm25s.BM25(method="lucene")
        if terms:
            self._bm25.index(terms, show_progress=False)
        self._eligible = lru_cache(maxsize=64)(self._find_eligible)

    def search(self, query: str, *, caller: Caller, on_date: str | None, limit: int) -> list[Hit]:
        """Best chunks first, equal scores in order of document id, version and place.

        Only chunks that this caller may see and that hold on this day compete, so hidden documents use up no
        places. Empty when nothing is close enough to the question to count as found.
        """
        import numpy as np

        folded = self._folding.fold(query)
        known = [term for term in self._folding.terms(folded) if term in self._holding]
        asked = content_words(self._folding.words(folded))
        if not known or not asked:
            return []
        eligible = self._eligible(
            Caller(caller.tenant, caller.user and "-", caller.groups, caller.knowledge_base), on_date
        )
        scores = np.round(self._bm25.get_scores(known).astype(np.float64), 4) * eligible
        order = np.lexsort((np.arange(len(scores)), -scores))[: max(limit, CANDIDATES)]
        best = float(scores[order[0]])
        hits = [Hit(int(at), float(scores[at])) for at in order if 0 < scores[at] >= MIN_SCORE_SHARE * best]
        return [hit for hit in hits if self.coverage(asked, hit.position) >= MIN_COVERAGE][:limit]

    def coverage(self, asked: Sequence[str], position: int) -> float:
        """The share of what a question asks about that a chunk (with its title) holds, from 0 to 1.

        Each content word weighs as much as it is rare in the whole index; one that stands nowhere weighs as one
        that stands once. A word of three or more Chinese characters that is absent counts by its character pairs.
        """
        weights = [self._weight(word) for word in asked]
        held = [
            weight * self._share_held(word, position) for word, weight in zip(asked, weights, strict=True)
        ]
        return sum(held) / sum(weights)

    def _weight(self, word: str) -> float:
        holding = max(self._holding[word], 1)
        return log(1 + (len(self._terms) - holding + 0.5) / (holding + 0.5))

    def _share_held(self, word: str, position: int) -> float:
        terms = self._terms[position]
        if word in terms or (_HAS_HAN.search(word) and word in self._bodies[position]):
            return 1.0
        pairs = [word[at : at + 2] for at in range(len(word) - 1)] if _HAS_HAN.search(word) else []
        return sum(pair in terms for pair in pairs) / len(pairs) if len(pairs) > 1 else 0.0

    def _find_eligible(self, caller: Caller, on_date: str | None) -> Any:
        import numpy as np

        records = self.snapshot.records
        current = {record.key for record in records} if on_date is None else current_keys(records, on_date)
        seen = [record.key in current and may_see(caller, record.access) for record in records]
        return np.array([seen[record] for record, _, _ in self.snapshot.chunks], dtype=np.float64)


class LexicalRetriever(BaseRetriever):
    """A LangChain retriever over the knowledge file. Follows every change of it; nothing is configured.

    Invoked with `caller` and `on_date`, it narrows its candidates to them. Invoked plainly, as from an ensemble,
    it proposes public documents of any date only.
    """

    store: Any
    limit: int = CANDIDATES
    _folding: Folding = PrivateAttr(default_factory=Folding)
    _index: LexicalIndex | None = PrivateAttr(default=None)
    _building: Any = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, store: KnowledgeStore, **fields: Any) -> None:
        super().__init__(**{"store": store, **fields})

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain passes it by name
        caller: Caller | None = None,
        on_date: str | None = None,
    ) -> list[Document]:
        index = self.current_index()
        hits = index.search(query, caller=caller or Caller("", ""), on_date=on_date, limit=self.limit)
        return [_as_langchain(index.snapshot, hit) for hit in hits]

    def current_index(self) -> LexicalIndex:
        """The index of the knowledge as stored now; built by one thread while others wait for it."""
        version = self.store.knowledge_version()
        index = self._index
        if index is not None and index.snapshot.knowledge_version == version:
            return index
        with self._building:
            index = self._index
            if index is None or index.snapshot.knowledge_version != version:
                index = LexicalIndex(self.store.snapshot(), self._folding)
                self._index = index
            return index


def _as_langchain(snapshot: Snapshot, hit: Hit) -> Document:
    place, chunk, text = snapshot.chunks[hit.position]
    record = snapshot.records[place]
    metadata = {
        "document_id": record.document_id,
        "version": record.version,
        "start": chunk.start,
        "end": chunk.end,
        "score": hit.score,
    }
    return Document(page_content=text, metadata=metadata)
