"""What clients send and get, as the OpenAPI document shows it. Parsed here once, strictly."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from api.problems import Refusal
from api.strict_json import JsonFaultError, MalformedJsonError, read_object

# No control characters; lone surrogates are no text and are refused with every pattern.
_NAME = r"^[^\x00-\x1f\x7f]+$"
# What Python takes for blank, character by character: `\s` is not the same in every language.
BLANKS = r"\x09-\x0d\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# What check_text asks for, as far as a pattern can say it, for the readers of the document.
TEXT: dict[str, Any] = {"pattern": rf"^[^\x00]*[^\x00{BLANKS}][^\x00]*$"}

# Any text that every store and every model can take.
Words = Annotated[str, Field(pattern=r"^[^\x00]*$")]
ThreadId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=512,
        pattern=_NAME,
        description="The conversation's name, chosen by the caller.",
    ),
]

CheckpointId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$")]


class StrictRoute(APIRoute):
    """Reads its body by `strict_json`, before anything else. Every route that has a body is one."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def strict(request: Request) -> Response:
            body = await request.body()
            if body:
                request = _Read(request.scope, request.receive, object_in(body), body)
            return await handle(request)

        return strict


class _Read(Request):
    """A request whose body has been read."""

    def __init__(self, scope: Any, receive: Any, sent: dict[str, Any], body: bytes) -> None:
        super().__init__(scope, receive)
        self._sent, self._body = sent, body

    async def json(self) -> Any:
        return self._sent


def object_in(body: bytes) -> dict[str, Any]:
    """Raises Refusal "malformed_json" or "invalid_body"."""
    try:
        return read_object(body)
    except MalformedJsonError:
        raise Refusal("malformed_json") from None
    except JsonFaultError as error:
        raise Refusal(
            "invalid_body", errors=[{"field": field_at(place), "code": rule} for place, rule in error.faults]
        ) from None


def field_at(place: tuple[int | str, ...]) -> str:
    """Dotted, bounded, and without what no text can carry: an unknown key is the sender's own text."""
    text = ".".join(map(str, place)).encode("utf-8", "replace").decode()
    return text.replace("\0", "?")[:64] or "body"


class Body(BaseModel):
    """Unknown fields and other types than declared are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ChatBody(Body):
    thread_id: ThreadId = Field(examples=["my-first-conversation"])
    message: str = Field(
        min_length=1,
        max_length=4000,
        description="The user's text, a reply, or a command such as /retry. Not blank, no NUL.",
        examples=["云帆科技2023年的营业收入是多少？"],
        json_schema_extra=TEXT,
    )
    client_message_id: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=200,
                pattern=_NAME,
                description="The client's own id: sent again with the same message it gets the same result.",
            ),
        ]
        | None
    ) = None


class StopBody(Body):
    thread_id: ThreadId


class Stopping(BaseModel):
    thread_id: str
    stopping: bool = Field(description="False when nothing was running.")


class RequestRecord(BaseModel):
    """One request as the log keeps it; exactly these 13 keys."""

    schema_version: int
    request_id: str
    thread_id: str
    question: str
    original_question: str | None
    input_kind: str
    received_at: str
    started_at: str
    finished_at: str | None
    duration_ms: int | None
    status: str
    degraded: bool
    error_code: str | None


class RequestList(BaseModel):
    items: list[RequestRecord] = Field(description="Oldest first.")


class WindowMessage(BaseModel):
    role: str
    content: str


class WindowView(BaseModel):
    """What a model would see of this conversation, and what it would not."""

    turns: int
    omitted_turns: int
    cut_bytes: int
    bytes: int
    reasons: list[str]
    messages: list[WindowMessage]


class Live(BaseModel):
    status: str = "ok"


class Ready(BaseModel):
    status: str = Field(description="ok, or down when a part is.")
    parts: dict[str, dict[str, Any]]


class Version(BaseModel):
    name: str
    version: str
