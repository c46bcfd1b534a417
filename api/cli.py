"""The command line: the service's graph and saver, without request records.

Exit codes: 0 done, 1 the request failed, 2 a mistake of the caller, 3 a missing service, 4 a busy thread.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn
from uuid import uuid4

import structlog
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

app = typer.Typer(
    name="business-assistant",
    help="Answers business and policy questions over many turns. 多轮业务与政策问答。",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
out = Console(highlight=False, markup=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

DAY = "%Y-%m-%d"
FAILED, MISTAKE, NO_SERVICE, BUSY = 1, 2, 3, 4

Thread = Annotated[
    str | None, typer.Option("--thread", "-t", help="Conversation to go on with; a new one if not given.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def main() -> NoReturn:
    """Run one command; every expected fault is one line on standard error and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    log_to_stderr()
    leave(run_command())


def run_command() -> int:
    """One command -> exit code. An unexpected fault keeps its traceback."""
    try:
        return app(standalone_mode=False, prog_name="business-assistant") or 0
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - what nobody expected is raised again by report
        return report(error)


def leave(code: int) -> NoReturn:
    """End the process, where everything is closed. A thread that is left may hang in a model, and the
    interpreter would wait for it for ever.
    """
    if threading.active_count() == 1:
        sys.exit(code)
    leave_at_once(code)


def leave_at_once(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, RuntimeError):  # nobody reads, or it was being written to
            stream.flush()
    os._exit(code)


def report(error: Exception) -> int:
    """Say what is wrong and what to do, in one line. An unexpected fault keeps its traceback."""
    code = exit_code_of(error)
    if code is None:
        raise error
    message = " ".join(getattr(error, "format_message", lambda: str(error))().split())
    err.print(f"business-assistant: {message}")
    return code


def exit_code_of(error: Exception) -> int | None:
    """One table from faults to exit codes; None for what nobody expected."""
    from api.leases import LeaseError
    from checkpoint.conversations.errors import ConversationStoreError
    from checkpoint.errors import CheckpointError, ConfigError
    from graph.replay import UnknownThreadError
    from graph.settings import SettingsError
    from nodes.contracts import NodeError
    from nodes.gate import BadTextError
    from nodes.retrieve.documents import KnowledgeError

    table: list[tuple[type[Exception], int]] = [
        (SettingsError, MISTAKE),
        (ConfigError, MISTAKE),
        (BadTextError, MISTAKE),
        (KnowledgeError, MISTAKE),
        (UnknownThreadError, MISTAKE),
        (LeaseError, BUSY),
        (CheckpointError, NO_SERVICE),
        (ConversationStoreError, NO_SERVICE),
        (NodeError, FAILED),
    ]
    if hasattr(error, "format_message"):  # typer's own errors of usage
        return MISTAKE
    return next((code for kind, code in table if isinstance(error, kind)), None)


def log_to_stderr() -> None:
    """The command line's own log: warnings and worse, away from the answers."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(30),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
    )


@app.command()
def ask(question: str, thread: Thread = None, as_json: AsJson = False) -> None:
    """Ask one question and print the answer."""
    from graph.run import TurnResult, check_text

    check_text(question)
    with _assistant(searches=True) as assistant:
        thread_id = thread or f"ask-{uuid4()}"
        result: TurnResult = _answer(assistant, thread_id, question, None)
    _print_result(result, thread_id, as_json=as_json)
    if result.clarification and thread is None and not as_json:
        err.print(f"(reply with: ask --thread {thread_id} …)")
    raise typer.Exit(FAILED if result.status == "failed" else 0)


@app.command()
def chat(
    thread: Thread = None,
    as_json: AsJson = False,
    echo: Annotated[bool, typer.Option(help="From a pipe: print each request before its answer.")] = False,
) -> None:
    """Talk in the terminal. From a pipe or file: one request a line, one answer each."""
    with _assistant(searches=True) as assistant:
        thread_id = thread or f"chat-{uuid4()}"
        if sys.stdin.isatty():
            _converse(assistant, thread_id)
        else:
            raise typer.Exit(_answer_lines(assistant, thread_id, as_json=as_json, echo=echo))


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="Processes that share the port; SIGHUP renews them in turn.")
    ] = 1,
) -> None:
    """Serve the web page and the HTTP API."""
    from api.identity import check_bind
    from api.service import serve as serve_alone
    from api.service import serve_with
    from graph.settings import load_settings

    settings = load_settings()
    check_bind(host, sign_in=settings.has_sign_in)  # before anything that takes time
    with _progress() as progress:
        _prepare_knowledge(settings, progress)
    if workers == 1:
        serve_alone(settings, host, port, announce=_announce)
        return
    raise typer.Exit(serve_with(settings, host, port, workers, announce=_announce))


@app.command(hidden=True)
def work(slot: int, door: int, link: int) -> None:
    """Be one process of `serve --workers`; the numbers are its slot and two sockets it was given."""
    import socket

    from api.service import work as be_worker
    from graph.settings import load_settings

    with socket.socket(fileno=door) as door_socket, socket.socket(fileno=link) as link_socket:
        be_worker(load_settings(), slot, door_socket, link_socket)


@app.command()
def ingest(
    path: Path,
    keep_sample: Annotated[
        bool, typer.Option(help="Keep the invented sample beside your documents.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Load your own folder of Markdown, text, CSV and JSONL in place of the sample."""
    from dataclasses import asdict

    from graph.compose import embed_knowledge, open_store
    from graph.settings import load_settings
    from nodes.retrieve.loading import load_folder
    from nodes.retrieve.sample import SAMPLE_SET

    replaced = () if keep_sample else (SAMPLE_SET,)
    settings = load_settings()
    with open_store(settings) as store, _progress() as progress:
        loaded = load_folder(path, store, progress=progress, in_place_of=replaced)
    for problem in loaded.problems:
        err.print(problem)
    with _progress("Embedding") as progress:
        embed_knowledge(settings, progress)
    if as_json:
        out.print(json.dumps(asdict(loaded), ensure_ascii=False))
        return
    out.print(
        f"{loaded.added} added, {loaded.changed} changed, {loaded.unchanged} unchanged, "
        f"{loaded.removed} removed; {loaded.chunks} passages, {loaded.facts} facts, "
        f"{len(loaded.problems)} problems."
    )


@app.command()
def history(thread: Annotated[str, typer.Argument(help="Conversation id.")], as_json: AsJson = False) -> None:
    """Print the request records of a conversation, oldest first."""
    with _assistant() as assistant:
        records = assistant.saver.list_requests(thread)
    if as_json:
        out.print(json.dumps({"items": records}, ensure_ascii=False))
        return
    for record in records:
        out.print(
            f"{record['received_at']}  {record['input_kind']:<22} {record['status']:<12} {record['question']}"
        )
    if not records:
        err.print(
            "No request records: only questions sent over HTTP leave them, for as long as the thread lives."
        )


@app.command()
def window(thread: Annotated[str, typer.Argument(help="Conversation id.")], as_json: AsJson = False) -> None:
    """Print what a model would see of a conversation, and what is left out and why."""
    from graph.compose import window_of

    with _assistant() as assistant:
        seen = window_of(assistant, thread, _caller(), "zh")
    if as_json:
        messages = [{"role": role, "content": text} for role, text in seen.messages]
        out.print(json.dumps({**seen.report(), "messages": messages}, ensure_ascii=False))
        return
    for role, text in seen.messages:
        out.print(f"[{role}] {text}")
    out.print(
        f"({seen.turns} turns, {seen.bytes} bytes; "
        f"{seen.omitted_turns} turns omitted, {seen.cut_bytes} bytes cut"
        + (f"; {', '.join(seen.reasons)})" if seen.reasons else ")")
    )
    if not (seen.turns or seen.omitted_turns):
        err.print("No turn of this conversation counts as context yet: check the id, or ask something first.")


@app.command()
def replay(
    thread: Annotated[str, typer.Argument(help="Conversation id.")],
    checkpoint: Annotated[str | None, typer.Option(help="Replay up to this checkpoint.")] = None,
    live: Annotated[bool, typer.Option(help="Call the model again, not its recorded replies.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the stored turns again on a scratch copy and compare digest, evidence and answer."""
    from graph.replay import replay_thread

    with _assistant(searches=True) as assistant:
        report_ = replay_thread(assistant, thread, caller=_caller(), checkpoint_id=checkpoint, live=live)
    if as_json:
        out.print(json.dumps(report_.to_json(), ensure_ascii=False))
    else:
        out.print(report_.as_text())
    raise typer.Exit(0 if report_.is_equal else FAILED)


@app.command()
def archive(as_json: AsJson = False) -> None:
    """Copy request records from Redis into SQL before they expire. Safe to run again and beside a service."""
    from dataclasses import asdict

    from api.retention import archive as run_archive
    from graph.settings import load_settings

    with _progress() as progress:
        done = asdict(run_archive(load_settings(), progress))
    _print_data(done, as_json=as_json)


@app.command()
def stats(
    since: Annotated[
        datetime | None, typer.Option(formats=[DAY], help="First day, for example 2026-11-01.")
    ] = None,
    until: Annotated[datetime | None, typer.Option(formats=[DAY], help="Last day.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print how many new questions were asked each day, from what has been archived."""
    from dataclasses import asdict

    from api.retention import stats as count_days
    from graph.settings import load_settings

    first = since.date().isoformat() if since else None
    last = until.date().isoformat() if until else None
    days = [asdict(day) for day in count_days(load_settings(), since=first, until=last)]
    if as_json:
        out.print(json.dumps({"items": days}, ensure_ascii=False, default=str))
        return
    for day in days:
        out.print("  ".join(str(value) for value in day.values()))
    if not days:
        err.print("Nothing has been archived for these days: run archive first.")


@app.command()
def prune(
    keep_turns: Annotated[
        int | None, typer.Option(min=1, help="Keep the newest turns of each thread.")
    ] = None,
    older_than: Annotated[
        int | None, typer.Option("--older-than", min=1, help="Remove what is older, in days.")
    ] = None,
    records: Annotated[bool, typer.Option("--records", help="Request records too, once archived.")] = False,
    messages: Annotated[bool, typer.Option("--messages", help="Rows of conversations too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove old checkpoints and rows, and purge what the retention settings no longer keep."""
    from api.retention import prune as run_prune
    from graph.settings import load_settings

    with _progress() as progress:
        receipt = run_prune(
            load_settings(),
            keep_turns=keep_turns,
            older_than_days=older_than,
            records=records,
            messages=messages,
            progress=progress,
        )
    _print_data(receipt.to_json(), as_json=as_json)


@app.command("import-threads")
def import_threads(
    source_url: Annotated[str, typer.Argument(help="Server that langgraph-checkpoint-redis wrote to.")],
    thread: Annotated[list[str] | None, typer.Option("--thread", "-t", help="Only these threads.")] = None,
    as_json: AsJson = False,
) -> None:
    """Copy the threads of langgraph-checkpoint-redis into ours, verified; run it again to go on."""
    from dataclasses import asdict

    from checkpoint import RedisContextSaver
    from checkpoint.importing import import_threads as run_import
    from checkpoint.importing import open_redis_stack
    from graph.settings import load_settings

    with (
        open_redis_stack(source_url) as source,
        RedisContextSaver(load_settings().context) as target,
        _progress() as progress,
    ):
        report_ = run_import(source, target, thread_ids=thread, progress=progress)
    _print_data(asdict(report_), as_json=as_json)
    raise typer.Exit(0 if report_.is_complete else FAILED)


@app.command("export-contract")
def export_contract(
    folder: Annotated[Path, typer.Argument(help="Where the files go.")] = Path("contract"),
) -> None:
    """Write the Context Contract's JSON Schema and Go structs."""
    from api.contract.export import export_contract as export

    for written in export(folder):
        out.print(str(written))


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Check Redis, the knowledge and the model, and say what to do."""
    from api.retention import check_database
    from graph.compose import check_parts, look_at
    from graph.settings import load_settings

    settings = load_settings()
    checks = [*check_parts(settings), look_at("database", lambda: check_database(settings))]
    if as_json:
        out.print(json.dumps([check.to_json() for check in checks], ensure_ascii=False))
    else:
        for check in checks:
            out.print(f"{'ok  ' if check.is_well else 'FAIL'}  {check.part}: {check.finding}")
    raise typer.Exit(0 if all(check.is_well for check in checks) else NO_SERVICE)


def _announce(address: str) -> None:
    print(address, flush=True)  # whoever waits for the address may read from a pipe
    if err.is_terminal:
        err.print("(open it in a browser; Ctrl-C ends the service · 用浏览器打开，Ctrl-C 结束)")


def _print_data(value: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        out.print(json.dumps(value, ensure_ascii=False, default=str))
        return
    for name, found in value.items():
        out.print(f"{name}: {json.dumps(found, ensure_ascii=False, default=str)}")


@contextmanager
def _assistant(*, searches: bool = False) -> Iterator[Any]:
    """What `searches` waits, with EMBEDDINGS set, until the knowledge has been embedded."""
    from graph.compose import embed_knowledge, open_assistant
    from graph.settings import load_settings

    settings = load_settings()
    with _progress() as progress:
        _prepare_knowledge(settings, progress)
    if searches:
        with _progress("Embedding") as progress:
            embed_knowledge(settings, progress)
    with open_assistant(settings) as assistant:
        yield assistant


def _prepare_knowledge(settings: Any, progress: Callable[[int, int, str], None]) -> None:
    from graph.compose import prepare_knowledge

    prepare_knowledge(settings, progress)


@contextmanager
def _progress(doing: str = "Loading") -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar on standard error that appears with the first step and leaves no trace."""
    bar = Progress(
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        console=err,
        transient=True,
    )

    def step(done: int, total: int, name: str) -> None:
        if not err.is_terminal:
            return  # it would leave an empty line there
        if not bar.tasks:
            bar.start()
            bar.add_task(name, total=total)
        bar.update(bar.tasks[0].id, completed=done, total=total, description=name)

    try:
        yield step
    finally:
        if bar.tasks:
            bar.stop()


def _caller() -> Any:
    from nodes.contracts import Caller

    return Caller()


def _answer(assistant: Any, thread_id: str, text: str, on_event: Callable[[Any], None] | None) -> Any:
    """One request under the thread's lease; no request record is written."""
    from langgraph.runtime import RunControl

    from api.leases import hold
    from graph.run import STOP, last_result, stream_turn
    from nodes.contracts import Request

    control = RunControl()
    request: Request = {"request_id": assistant.new_id(), "text": text, "received_at": assistant.clock()}
    client, prefix = assistant.saver.wire.client, assistant.settings.context.key_prefix
    with (
        hold(client, thread_id, prefix=prefix, on_stop=lambda: control.request_drain(STOP)) as lease,
        _interrupt_stops(control),
    ):
        events = stream_turn(
            assistant, request, thread_id=thread_id, caller=_caller(), lease=lease.token, control=control
        )
        return last_result(events, on_event)


@contextmanager
def _interrupt_stops(control: Any) -> Iterator[None]:
    """The first Ctrl-C stops the answer and keeps what was said; the second one leaves at once."""
    from graph.run import STOP

    def stop(_number: int, _frame: Any) -> None:
        if control.drain_requested:
            leave_at_once(130)  # an exception would wait for the model
        control.request_drain(STOP)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# As a whole line at the terminal only: over a pipe, and over HTTP, these are words like others.
_LEAVING = frozenset({"exit", "quit", "/exit", "/quit", "/q", ":q", "退出", "/退出"})


def _converse(assistant: Any, thread_id: str) -> None:
    """A conversation in a terminal, with the text as it comes."""
    out.print(f"会话 {thread_id} · /retry 重试 · /discard 放弃 · /quit 退出 (leave)")
    while True:
        try:
            text = out.input("\n> ")
        except EOFError:
            out.print()
            return
        if not text.strip():
            continue
        if text.strip().casefold() in _LEAVING:
            return
        try:
            _answer_streaming(assistant, thread_id, text)
        except Exception as error:
            if exit_code_of(error) is None:
                raise
            report(error)


def _answer_streaming(assistant: Any, thread_id: str, text: str) -> None:
    from graph.run import ResetEvent, TokenEvent

    shown = False

    def show(event: Any) -> None:
        nonlocal shown
        if isinstance(event, TokenEvent):
            out.print(event.text, end="")
            shown = True
        elif isinstance(event, ResetEvent):
            out.print("\n…")

    result = _answer(assistant, thread_id, text, show)
    if shown:
        out.print()
        _print_sources(result)
    else:
        _print_result(result, thread_id, as_json=False)


def _answer_lines(assistant: Any, thread_id: str, *, as_json: bool, echo: bool) -> int:
    """One request a line. A line that cannot be accepted is said and passed over; exit code 2 then."""
    worst = 0
    for raw in sys.stdin.buffer:
        text = raw.rstrip(b"\r\n").decode("utf-8", "surrogateescape")
        if not text.strip():
            continue
        if echo:
            out.print(f"> {text}")
        try:
            result = _answer(assistant, thread_id, text, None)
        except Exception as error:
            code = exit_code_of(error)
            if code is None or code == NO_SERVICE:
                raise
            worst = max(worst, code)
            report(error)
            if as_json:
                out.print(json.dumps({"status": "refused", "error": str(error)}, ensure_ascii=False))
            continue
        _print_result(result, thread_id, as_json=as_json)
        if echo:
            out.print()
    return worst


def _print_result(result: Any, thread_id: str, *, as_json: bool) -> None:
    if as_json:
        out.print(json.dumps({"thread_id": thread_id, **result.to_json()}, ensure_ascii=False))
        return
    out.print(result.text or failure_text(result))
    _print_sources(result)


def _print_sources(result: Any) -> None:
    for citation in result.answer["citations"] if result.answer else ():
        out.print(
            f"[{citation['label']}] {citation['title']} ({citation['document_id']}@{citation['version']})"
        )
    if result.degraded and result.status == "completed":
        err.print("(degraded: the model's answer could not be used; this one is quoted from the sources)")


def failure_text(result: Any) -> str:
    if result.status == "failed":
        return (
            "处理失败。输入 /retry（重试）再试一次，或 /discard（放弃）。 (Failed: type /retry or /discard.)"
        )
    return "已停止。 (Stopped.)"


if __name__ == "__main__":
    main()
