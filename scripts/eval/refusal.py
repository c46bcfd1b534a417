"""Over passages that do not hold the answer: does the assistant say so, ask back, or answer all the same?

MTRAG-UN: all passages of all tasks in one store; each task's last turn is asked on its own, without its
conversation, and answered by quotations (no model). `whole turn` is what a user sees; `search and answer`
leaves the question back aside and looks only at whether passages and quotations were found.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graph.answer_question import answer_question
from nodes.answer.providers import ExtractiveProvider, is_unanswered
from nodes.contracts import Caller, Prompt, Retriever
from nodes.reading.language import detect_language
from nodes.retrieve.documents import KnowledgeStore
from scripts.eval.knowledge import RECEIVED_AT, retriever_of, store_of
from scripts.eval.public_sets import Task, pooled, read_mtrag_un
from scripts.eval.report import Cell, Options, Report, Table, share

LABELS = ("ANSWERABLE", "PARTIAL", "UNANSWERABLE", "UNDERSPECIFIED")
ENDS = ("answered", "not_found", "asked_back", "other")


@dataclass(frozen=True)
class End:
    """How a task ended, and the ids of the passages that were quoted."""

    how: str
    quoted: frozenset[str] = frozenset()


Answered = Callable[[str], End]


def evaluate(options: Options) -> Report:
    if options.data is None:
        return Report("refusal", (), left_out=["everything (no --data)"])
    tasks = read_mtrag_un(options.data)[: options.sample]
    with store_of(pooled(tasks)) as store:
        retriever = retriever_of(store, options, "mtrag-un")
        return evaluate_tasks(tasks, whole_turn(store, retriever), search_and_answer(retriever))


def evaluate_tasks(tasks: Sequence[Task], whole: Answered, searched: Answered) -> Report:
    ends = {
        name: [(task, answered(task.text)) for task in tasks]
        for name, answered in (("whole turn", whole), ("search and answer", searched))
    }
    alone = [(task, end) for task, end in ends["whole turn"] if task.turn_kind == "N/A"]
    tables = [counted(f"{name}, all turns", found) for name, found in ends.items()]
    tables.insert(1, counted("whole turn, only turns that are no follow-up", alone))
    misses = [
        {
            "id": task.id,
            "label": task.answerability,
            "kind": task.turn_kind,
            "how": end.how,
            "text": task.text,
        }
        for task, end in ends["whole turn"]
        if is_fault(task, end)
    ]
    return Report("refusal", tables, misses)


def is_fault(task: Task, end: End) -> bool:
    """Answered where nothing answers it; or said not to be found where a passage answers it."""
    if task.answerability in ("UNANSWERABLE", "UNDERSPECIFIED"):
        return end.how == "answered"
    return end.how == "not_found"


def counted(title: str, found: Sequence[tuple[Task, End]]) -> Table:
    rows: list[list[Cell]] = []
    for label in LABELS:
        held = [(task, end) for task, end in found if task.answerability == label]
        rows.append(
            [
                label,
                len(held),
                *(share(sum(end.how == how for _, end in held), len(held)) for how in ENDS),
                _from_own_passages(held),
            ]
        )
    return Table(title, ("label", "tasks", *ENDS, "answered, quoting a passage of the task"), rows)


def _from_own_passages(held: Sequence[tuple[Task, End]]) -> str:
    answered = [(task, end) for task, end in held if end.how == "answered"]
    right = sum(bool(end.quoted & {key for key, _ in task.passages}) for task, end in answered)
    return share(right, len(answered))


_HOW = {"fact": "answered", "comparison": "answered", "narrative": "answered", "clarification": "asked_back"}


def whole_turn(store: KnowledgeStore, retriever: Retriever) -> Answered:
    provider = ExtractiveProvider()

    def answered(text: str) -> End:
        found = answer_question(text, store, provider, retriever=retriever, received_at=RECEIVED_AT)
        how = _HOW.get(found["kind"], found["kind"])
        quoted = frozenset(citation["document_id"] for citation in found["citations"])
        return End(how if how in ENDS else "other", quoted)

    return answered


def search_and_answer(retriever: Retriever) -> Answered:
    provider = ExtractiveProvider()

    def answered(text: str) -> End:
        evidence = retriever.retrieve(text, caller=Caller(), on_date=RECEIVED_AT[:10])
        passages = evidence["passages"]
        if not passages:
            return End("not_found")
        prompt = Prompt(text, detect_language(text), passages, ())
        said = "".join(piece.text for piece in provider.stream(prompt))
        if is_unanswered(said):
            return End("not_found")
        quoted = [
            passage["document_id"] for at, passage in enumerate(passages, start=1) if f"[C{at}]" in said
        ]
        return End("answered", frozenset(quoted))

    return answered
