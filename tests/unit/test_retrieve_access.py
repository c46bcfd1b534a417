"""Who may see which document, case by case."""

import dataclasses

import pytest

from nodes.contracts import Caller
from nodes.retrieve.access import DocumentAccess, StoredSourceGuard, audience, may_see

STAFF = Caller(tenant="acme", user="lin", groups=frozenset({"hr"}))
PLAIN = Caller(tenant="acme", user="wu")
OTHER_TENANT = Caller(tenant="other", user="he", groups=frozenset({"hr"}))
NOBODY = Caller(tenant="", user="", groups=frozenset())
EVERYBODY = (STAFF, PLAIN, OTHER_TENANT, NOBODY)


@pytest.mark.parametrize(
    ("document", "who"),
    [
        (DocumentAccess("PUBLIC"), {STAFF, PLAIN, OTHER_TENANT, NOBODY}),
        (DocumentAccess("PUBLIC", tenant="acme"), {STAFF, PLAIN, OTHER_TENANT, NOBODY}),
        (DocumentAccess("INTERNAL"), {STAFF, PLAIN, OTHER_TENANT}),
        (DocumentAccess("INTERNAL", tenant="acme"), {STAFF, PLAIN}),
        (DocumentAccess("RESTRICTED", frozenset({"hr"})), {STAFF, OTHER_TENANT}),
        (DocumentAccess("RESTRICTED", frozenset({"hr"}), tenant="acme"), {STAFF}),
        (DocumentAccess("RESTRICTED", frozenset({"audit"})), set()),
        (DocumentAccess("RESTRICTED"), set()),
        (DocumentAccess("UNHEARD_OF"), set()),  # type: ignore[arg-type]
        (DocumentAccess("UNHEARD_OF", frozenset({"hr"})), set()),  # type: ignore[arg-type]
    ],
)
def test_each_access_admits_exactly_these_callers(document: DocumentAccess, who: set[Caller]) -> None:
    assert {caller for caller in EVERYBODY if may_see(caller, document)} == who


@pytest.mark.parametrize("level", ["PUBLIC", "INTERNAL", "RESTRICTED"])
def test_no_access_reaches_into_another_knowledge_base(level: str) -> None:
    document = DocumentAccess(level, frozenset({"hr"}), knowledge_base="elsewhere")  # type: ignore[arg-type]
    assert not may_see(STAFF, document)
    assert may_see(dataclasses.replace(STAFF, knowledge_base="elsewhere"), document)


def test_a_caller_with_a_tenant_but_no_user_is_not_signed_in() -> None:
    assert not may_see(Caller(tenant="acme", user=""), DocumentAccess("INTERNAL", tenant="acme"))


def test_a_user_of_no_tenant_is_not_signed_in() -> None:
    assert not may_see(Caller(tenant="", user="lin"), DocumentAccess("INTERNAL"))


def test_audience_is_a_hash_of_what_the_rules_read() -> None:
    assert audience(PLAIN) == audience(dataclasses.replace(PLAIN, user="someone else"))
    assert len(audience(PLAIN)) == 64
    different = {
        audience(PLAIN),
        audience(STAFF),
        audience(NOBODY),
        audience(OTHER_TENANT),
        audience(dataclasses.replace(PLAIN, knowledge_base="elsewhere")),
        audience(dataclasses.replace(PLAIN, groups=frozenset({"h", "r"}))),
        audience(dataclasses.replace(PLAIN, user="")),
    }
    assert len(different) == 7


def test_audience_is_the_same_in_every_version() -> None:
    """It is stored with turns and compared when they are replayed."""
    caller = Caller(tenant="云湖", user="lin", groups=frozenset({"hr", "审计"}))
    assert audience(caller) == "b870a1a032dbf87b47df5df76ec2c12eb4932e1d53773fbaa550c0401d2aab82"


class _Records(dict[tuple[str, str], DocumentAccess]):
    def access_of(self, keys: object) -> "_Records":
        return self


def test_the_source_guard_wants_every_source_to_exist_and_be_visible() -> None:
    records = _Records(
        {("a", "1"): DocumentAccess(), ("b", "1"): DocumentAccess("RESTRICTED", frozenset({"hr"}))}
    )
    guard = StoredSourceGuard(records)
    assert guard(PLAIN, [("a", "1")])
    assert guard(PLAIN, [])
    assert guard(STAFF, [("a", "1"), ("b", "1")])
    assert not guard(PLAIN, [("a", "1"), ("b", "1")])
    assert not guard(STAFF, [("a", "2")])
