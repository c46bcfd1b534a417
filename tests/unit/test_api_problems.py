"""Problem bodies: RFC 9457, one table, nothing of the request in them."""

import json

import pytest

from api.problems import MEDIA_TYPE, PROBLEMS, Refusal, problem_body, problem_response, refusal_of_status

MEMBERS = {"type", "title", "status", "detail", "instance", "code", "request_id", "retryable"}


@pytest.mark.parametrize("code", sorted(PROBLEMS))
def test_every_problem_has_every_member(code: str) -> None:
    body = problem_body(Refusal(code), request_id="r1", instance="/x")
    assert body.keys() == MEMBERS
    assert body["status"] == PROBLEMS[code].status
    assert body["type"].endswith(":" + code)
    assert all(body[name] for name in ("title", "detail"))


def test_retry_after_goes_into_the_header() -> None:
    response = problem_response(Refusal("thread_busy", retry_after=3), request_id="r1", instance="/x")
    assert response.status_code == 409
    assert response.headers["retry-after"] == "3"
    assert response.headers["content-type"] == MEDIA_TYPE
    assert json.loads(bytes(response.body))["retryable"] is True


@pytest.mark.parametrize(
    ("status", "code"), [(404, "not_found"), (405, "method_not_allowed"), (418, "bad_request")]
)
def test_errors_of_the_framework_get_our_body(status: int, code: str) -> None:
    assert refusal_of_status(status).code == code


def test_what_can_be_sent_again_says_so() -> None:
    retryable = {code for code, kind in PROBLEMS.items() if kind.retryable}
    assert {"thread_busy", "pool_full", "store_unavailable", "shutting_down"} <= retryable
    assert not retryable & {
        "invalid_text",
        "invalid_body",
        "malformed_json",
        "message_id_reused",
        "not_found",
    }
