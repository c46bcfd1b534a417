"""Does one of the suggestions for a vague question say what the human rewrite says?

By token overlap, not by a judge: a suggestion says it when it holds at least 0.8 of the content words of the
rewrite (`words.ContentWords`; 1.0 would ask for the rewriter's own wording). The vague text alone, and the
vague text with the turn before it, stand beside it as floors. Suggestions by rule come from
the user's earlier turns; by a model (`--model`, as MODEL) from the same turns without answers, since the sets
hold none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from checkpoint.window import PastTurn, Window, WindowLimits, remember, restore
from nodes.answer.providers import ExtractiveProvider, load_provider
from nodes.clarify.suggest import MAX_SUGGESTIONS, Names, by_model, by_rule
from nodes.contracts import Provider, Turn
from nodes.reading.language import detect_language
from nodes.retrieve.documents import KnowledgeStore
from nodes.retrieve.facts import Directory
from scripts.eval.knowledge import RECEIVED_AT, reader_of, sample_store
from scripts.eval.own_sets import read_rows
from scripts.eval.public_sets import Rewritten, read_cast, read_mtrag_rewrites
from scripts.eval.report import Cell, Options, Report, Table, share
from scripts.eval.words import ContentWords

ENOUGH = 0.8
Suggest = Callable[[Rewritten], Sequence[str]]
COLUMNS = ("set", "way", "questions", "offered any", "says it", "mean best share")


@dataclass(frozen=True)
class Way:
    name: str
    suggest: Suggest


def evaluate(options: Options) -> Report:
    with sample_store() as store:
        suggester = Suggester(store)
        ways = [
            Way("the text itself", lambda row: [row.text]),
            Way("with the turn before", lambda row: [" ".join([*row.before[-1:], row.text])]),
            Way("suggestions by rule", suggester.rule),
        ]
        left_out = ["suggestions by a model (no --model)"]
        if options.model:
            provider = load_provider(options.model)
            ways.append(Way(f"suggestions by {provider.name}", suggester.model(provider)))
            left_out = []
        sets, missing = sets_of(options, suggester.is_asked_about)
        return evaluate_sets(sets, ways, [*left_out, *missing])


def evaluate_sets(
    sets: dict[str, Sequence[Rewritten]], ways: Sequence[Way], left_out: Sequence[str] = ()
) -> Report:
    words = ContentWords()
    rows: list[list[Cell]] = []
    misses: list[dict[str, object]] = []
    for name, questions in sets.items():
        for way in ways:
            offered = [(row, list(way.suggest(row))[:MAX_SUGGESTIONS]) for row in questions]
            best = [best_share(words, row, texts) for row, texts in offered]
            rows.append(scored(name, way.name, offered, best))
            if way is ways[-1]:
                misses += [
                    {"set": name, "id": row.id, "text": row.text, "means": row.rewrite, "offered": texts}
                    for (row, texts), share_said in zip(offered, best, strict=True)
                    if share_said < ENOUGH
                ]
    title = f"One of {MAX_SUGGESTIONS} holds at least {ENOUGH} of the rewrite's content words"
    return Report("suggestions", [Table(title, COLUMNS, rows)], misses, left_out)


def scored(
    name: str, way: str, offered: Sequence[tuple[Rewritten, Sequence[str]]], best: Sequence[float]
) -> list[Cell]:
    count = len(offered)
    return [
        name,
        way,
        count,
        share(sum(bool(texts) for _, texts in offered), count),
        share(sum(each >= ENOUGH for each in best), count),
        sum(best) / max(1, count),
    ]


def best_share(words: ContentWords, row: Rewritten, texts: Sequence[str]) -> float:
    wanted = words.of(row.rewrite)
    return max((words.share_said(wanted, text) for text in texts), default=0.0)


def sets_of(
    options: Options, is_asked_about: Callable[[str], bool]
) -> tuple[dict[str, Sequence[Rewritten]], list[str]]:
    """Dependent turns with something before them; of the public ones also those that would be asked about."""
    own = [
        Rewritten(row["id"], row["text"], row["means"], tuple(row["before"]))
        for row in read_rows("follow_ups")
        if row["dependent"]
    ]
    sets: dict[str, Sequence[Rewritten]] = {
        f"own, {language}": [row for row in own if detect_language(row.text) == language]
        for language in ("zh", "en")
    }
    if options.data is None:
        return sets, ["the public sets (no --data)"]
    words = ContentWords()
    for name, rows in (
        ("MTRAG", read_mtrag_rewrites(options.data)),
        ("CAsT", read_cast(options.data)),
    ):
        dependent = [row for row in rows if row.before and words.added(row.text, row.rewrite)]
        if dependent:
            sets[f"{name}, all dependent"] = dependent
            sets[f"{name}, asked about"] = [row for row in dependent if is_asked_about(row.text)]
    return sets, []


class Suggester:
    """The product's own step over a conversation of questions alone."""

    def __init__(self, store: KnowledgeStore) -> None:
        self._read = reader_of(store)
        self._directory = Directory(store)

    def is_asked_about(self, text: str) -> bool:
        return "reference" in self._read(text, RECEIVED_AT)["needs"]

    def rule(self, row: Rewritten) -> list[str]:
        intent = self._read(row.text, RECEIVED_AT)
        names = Names(self._directory, intent["language"])
        return by_rule(turn_of(row.text), intent, window_of(row), self._read, names)

    def model(self, provider: Provider) -> Suggest:
        if isinstance(provider, ExtractiveProvider):
            raise SystemExit("--model: the extractive provider words nothing; name a chat model")

        def suggest(row: Rewritten) -> list[str]:
            questions, _ = by_model(row.text, window_of(row), detect_language(row.text), provider)
            return questions

        return suggest


def turn_of(text: str) -> Turn:
    return {
        "turn_id": "now",
        "original_question": text,
        "standalone_question": text,
        "standalone_reason": "independent",
        "opened_at": RECEIVED_AT,
        "received_at": RECEIVED_AT,
        "audience": "",
    }


def window_of(row: Rewritten) -> Window:
    """The earlier questions as the window of a conversation in which nothing was found for any of them."""
    history: object = None
    for number, question in enumerate(row.before):
        past: PastTurn = {
            "turn_id": f"turn-{number}",
            "question": question,
            "answer": "…",
            "kind": "narrative",
            "sources": [],
            "at": RECEIVED_AT,
        }
        history = remember(history, past, WindowLimits())
    return restore(
        history, limits=WindowLimits(), may_see=lambda _sources: True, language=detect_language(row.text)
    )
