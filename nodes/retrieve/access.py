"""Who may see which document. Pure rules; the records they judge are read anew on every request."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from nodes.contracts import Caller

Access = Literal["PUBLIC", "INTERNAL", "RESTRICTED"]
Key = tuple[str, str]  # (document id, version)


@dataclass(frozen=True)
class DocumentAccess:
    """What decides who sees a document version. `tenant` None: the document belongs to no tenant."""

    access: Access = "PUBLIC"
    groups: frozenset[str] = frozenset()
    tenant: str | None = None
    knowledge_base: str = "default"


class AccessRecords(Protocol):
    """Where the current access of documents is read. A key that does not exist now is not in the result."""

    def access_of(self, keys: Sequence[Key]) -> Mapping[Key, DocumentAccess]: ...


def may_see(caller: Caller, document: DocumentAccess) -> bool:
    """Whether this caller may see this document; anything not granted below is refused.

    Always: the document is in the caller's knowledge base. PUBLIC: anyone there. INTERNAL: a signed-in caller
    of the document's tenant (of any tenant where it names none). RESTRICTED: a caller who holds one of its
    groups, and is of its tenant where it names one.
    """
    if caller.knowledge_base != document.knowledge_base:
        return False
    if document.access == "PUBLIC":
        return True
    if document.tenant is not None and document.tenant != caller.tenant:
        return False
    if document.access == "INTERNAL":
        return is_signed_in(caller)
    return document.access == "RESTRICTED" and not caller.groups.isdisjoint(document.groups)


def is_signed_in(caller: Caller) -> bool:
    """A door that knows nobody passes a caller without tenant or user."""
    return bool(caller.tenant and caller.user)


def audience(caller: Caller) -> str:
    """sha256 hex of what `may_see` reads of a caller: equal for callers who may see the same documents.

    The user's name is not part of it, since no rule reads more of it than whether there is one.
    """
    permissions = {
        "groups": sorted(caller.groups),
        "knowledge_base": caller.knowledge_base,
        "signed_in": is_signed_in(caller),
        "tenant": caller.tenant,
    }
    canonical = json.dumps(permissions, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


class StoredSourceGuard:
    """contracts.SourceGuard over the store: every source exists now and may be seen now.

    Validity dates play no part: a superseded version that is still stored stays visible to whoever may see
    it, so an old answer can go on quoting what was true when it was given.
    """

    def __init__(self, records: AccessRecords) -> None:
        self._records = records

    def __call__(self, caller: Caller, sources: Sequence[Key]) -> bool:
        keys = [(document_id, version) for document_id, version in sources]
        known = self._records.access_of(keys)
        return all(key in known and may_see(caller, known[key]) for key in keys)
