"""How long a prompt is: by the model's own tokenizer where it was given one, else by the stated estimate.

A count never fetches anything: neither LangChain's default nor OpenAI's tokenizer is ever asked.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import langchain_core.language_models.base
import pytest
import tiktoken
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from promise import NOW, Retelling, World

from nodes.answer.prompts import PromptBudget, build_prompt, estimate_tokens, plan_prompt
from nodes.answer.providers import ChatModelProvider, ExtractiveProvider, load_provider, token_count_of
from nodes.contracts import Generated, Prompt, ProviderError
from nodes.retrieve.documents import KnowledgeStore


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(*_: Any, **__: Any) -> Any:
        raise AssertionError("a tokenizer was fetched")

    monkeypatch.setattr(langchain_core.language_models.base, "get_tokenizer", fetched)
    monkeypatch.setattr(tiktoken, "get_encoding", fetched)
    monkeypatch.setattr(tiktoken, "encoding_for_model", fetched)


def model(**more: Any) -> BaseChatModel:
    return FakeListChatModel(responses=["补贴为1500元[C1]。"], **more)


def every_character(text: str) -> list[int]:
    return [ord(character) for character in text]


def asked() -> Prompt:
    return build_prompt("多少？", language="zh", passages=(), window=None, budget=PromptBudget())


def test_a_model_counts_with_the_tokenizer_it_was_given() -> None:
    provider = ChatModelProvider(model(custom_get_token_ids=every_character))
    count = token_count_of(provider)
    assert count("subsidy") == 7
    assert count("补贴") == 2
    *_, last = provider.stream(asked())
    assert last.usage is not None
    assert last.usage["completion_tokens"] == len("补贴为1500元[C1]。")
    assert last.usage["prompt_tokens"] == sum(len(message.content) for message in asked().messages)


@pytest.mark.parametrize(
    "provider",
    [
        ChatModelProvider(model()),
        ExtractiveProvider(),
        load_provider("openai:gpt-4o", base_url="http://127.0.0.1:9/v1"),
    ],
    ids=["chat model", "extractive", "openai"],
)
def test_without_one_it_is_the_stated_estimate(provider: Any) -> None:
    assert token_count_of(provider) is estimate_tokens


def test_usage_that_nobody_reports_is_estimated_and_nothing_is_fetched() -> None:
    *_, last = ChatModelProvider(model()).stream(asked())
    assert last.usage is not None
    assert last.usage["completion_tokens"] == estimate_tokens("补贴为1500元[C1]。")


def test_a_tokenizer_that_fails_is_a_failed_model_and_quotes_nothing() -> None:
    def failing(text: str) -> list[int]:
        raise RuntimeError(text)

    count = token_count_of(ChatModelProvider(model(custom_get_token_ids=failing), name="m"))
    with pytest.raises(ProviderError, match="tokenizer of model m failed") as found:
        count("密语")
    assert "密语" not in str(found.value)
    assert found.value.__cause__ is None


class Wordy(Retelling):
    """A provider of one's own, whose tokenizer makes much of every character."""

    name = "wordy"

    def count_tokens(self, text: str) -> int:
        return 8 * len(text)

    def stream(self, prompt: Prompt) -> Iterator[Generated]:
        yield Generated("资料中没有这一项。")


def test_the_budget_of_a_turn_is_counted_by_the_provider(sample_home: Any) -> None:
    """The same question to the same window: whoever counts more is shown less."""
    with KnowledgeStore(sample_home / "knowledge.db") as store:
        shown = []
        for provider in (Retelling(), Wordy()):
            seen: list[Any] = []

            def planned(*given: Any, seen: list[Any] = seen, **how: Any) -> Any:
                seen.append(plan_prompt(*given, **how))
                return seen[-1]

            world = World(store, lambda services, plan=planned: replace(services, plan=plan))
            world.talk(provider).say("创业担保贷款需要什么条件？", at=NOW)
            shown.append(sum(len(one["text"]) for one in seen[0].prompt.passages))
    assert 0 < shown[1] < shown[0]
