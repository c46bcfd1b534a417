"""The real server with each kind of identity, for what is tested against its own document."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jwt
from door import Door, open_door

from checkpoint.conversations.config import StoreConfig
from checkpoint.conversations.store import open_store
from graph.compose import open_assistant
from graph.settings import load_settings

SECRET = "a secret of at least 32 characters"


def token(**claims: object) -> str:
    made = {"tenant": "acme", "sub": "alice", "exp": time.time() + 10**6, **claims}
    return jwt.encode(made, SECRET, "HS256")


@contextmanager
def real_door(sample_home: Path, folder: Path, redis_url: str, **env: str) -> Iterator[Door]:
    """Real graph, sample, saver and database in a folder of its own."""
    home = shutil.copytree(sample_home, folder / "home")
    settings = load_settings({"BUSINESS_ASSISTANT_HOME": str(home), "REDIS_URL": redis_url, **env})
    with (
        open_assistant(settings) as assistant,
        open_store(StoreConfig(home=folder / "rows")) as store,
        open_door(assistant, store=store) as door,
    ):
        yield door
        door.wait_idle()
