"""No password, token or secret address in any message, log or answer."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import SECRET, Postgres
from service_projects import Client, serving, text_project

import labelonce
from labelonce.service import _secrets

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")

SERVICE = Path(labelonce.__file__).parent / "service"
SOURCES = [*sorted(SERVICE.glob("*.py")), SERVICE.parent / "cli" / "_serve.py"]
SECRETS = re.compile(r"\b_?(tokens?|secret|password|hashed|access|url|database|address|links|api_key|add_admin)\b")
ON_PURPOSE = {  # where a value with such a name is shown, and why that is right
    ("_label_studio_project.py", "api.url"),  # the address of Label Studio, which has no secret part
    ("_label_studio_bridge.py", "api.url"),  # what the secret is made of
    ("_label_studio_bridge.py", "url.rstrip('/')"),  # our own address, not a message
    ("_label_studio_bridge.py", "self.secret"),
    ("_label_studio_api.py", "url"),  # refused before it is used: it is no http(s) address
    ("_label_studio_api.py", "self._access"),  # headers of requests
    ("_label_studio_api.py", "self._token"),
    ("_app.py", "bridge.secret"),  # the path that is served
    ("_serve.py", "token"),  # the links, which are printed once
    ("_serve.py", "project.add_admin()"),
    ("_serve.py", "links"),  # the address in project.toml that links begin with
}


def formatted(path: Path) -> Iterator[str]:
    """Yield every expression that is put into a text or a log."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FormattedValue):
            yield ast.unparse(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("_log."):
            yield from map(ast.unparse, node.args[1:])


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_message_is_made_of_a_secret(path: Path) -> None:
    shown = {one for one in formatted(path) if SECRETS.search(one) and "without_secrets(" not in one}
    assert {one for one in shown if (path.name, one) not in ON_PURPOSE} == set()


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://ann:{SECRET}@db.example/pets",
        f"host=db password={SECRET} dbname=pets",
        f"host=db password='{SECRET}'",
        f"http://us.example/label-studio/{'0123456789' * 4}/webhook",
        "Authorization: Bearer 0123456789-0123456789",
    ],
)
def test_what_somebody_else_says_is_shown_without_secrets(text: str) -> None:
    shown = _secrets.without_secrets(f"cannot connect: {text}")
    assert "cannot connect" in shown
    assert not any(secret in shown for secret in (SECRET, "0123456789"))


DATABASES = [
    "postgresql://ann:{}@127.0.0.1:1/x?connect_timeout=1",
    "postgresql://ann:{}@127.0.0.1:1/x?bogus=1",
    "postgresql://ann:{}@[::1/x",
    "postgresql://ann:{}%zz@127.0.0.1/x",
    "postgresql:/ann:{}@127.0.0.1/x",
    "mysql://ann:{}@127.0.0.1/x",
    "postgresql://127.0.0.1:1/x?user=ann&password={}&connect_timeout=1",
]


EACH = """
import json, os, sys
from labelonce import cli
for variable, secret, arguments in json.loads(sys.argv[1]):
    os.environ[variable], sys.argv = secret, ["labelonce", *arguments]
    try:
        cli.main()
    except SystemExit as stopped:
        print(f"it ended with {stopped.code}", file=sys.stderr, flush=True)
    del os.environ[variable]
"""


def test_no_command_prints_a_secret(tmp_path: Path) -> None:
    folder = str(text_project(tmp_path).folder)
    there = ["--label-studio", "http://127.0.0.1:1", "--label-studio-project", "1"]
    runs: list[tuple[str, str, list[str]]] = [
        ("LABELONCE_DATABASE", database.format(SECRET), arguments)
        for database in DATABASES
        for arguments in (["serve", folder, "--port", "50999"], ["project", folder, "--workers", "eve"])
    ]
    runs += [("LABEL_STUDIO_API_KEY", SECRET, ["project", f"{folder}-new", *there])]
    runs += [("LABEL_STUDIO_API_KEY", SECRET, ["serve", folder, "--port", "50999", *there])]
    done = subprocess.run([sys.executable, "-c", EACH, json.dumps(runs)], capture_output=True, text=True, check=False)
    *said, _ = done.stderr.split("it ended with 2\n")
    assert len(said) == len(runs), done.stderr
    assert not any(SECRET in one or "Traceback" in one for one in (*said, done.stdout))
    assert all(" must " in one for one in said)


def test_no_answer_or_log_holds_a_secret(tmp_path: Path, postgres: Postgres, caplog: pytest.LogCaptureFixture) -> None:
    project = text_project(tmp_path, database=postgres.empty())
    tokens = [*project.add_workers(["ann"]).values(), project.add_admin()]
    said = []
    with serving(project) as http:
        paths = list(http.get("/openapi.json").json()["paths"])
        for away in (False, True):
            if away:
                postgres.stop()
            for token in (*tokens, "0123456789-guessed"):
                client = Client(http, token)
                for path in paths:
                    said += [client.get(path).text, client.post(path, {}).text, client.delete(path).text]
        postgres.start()
    everything = "\n".join([*said, caplog.text])
    assert not any(secret in everything for secret in (SECRET, *tokens, "0123456789-guessed"))
    assert "must answer" in caplog.text
