"""A PostgreSQL of one's own in a temporary folder, for tests and benchmarks: it can be killed and started again."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

TOOLS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [
    Path(found) for found in [shutil.which("initdb")] if found
]
SECRET = "hunter2-is-secret"


def why_not() -> str:
    """Return why there is no server here, nothing where there is one."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "no psycopg: pip install 'labelonce[postgres]'"
    return "" if TOOLS else "no PostgreSQL: apt-get install postgresql"


class Postgres:
    """A server with one database, whose user has a password."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="labelonce-postgres-"))
        names = {entry.pw_name for entry in pwd.getpwall()}
        self._user = None if os.getuid() else "postgres" if "postgres" in names else "nobody"  # root may not run it
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self.folder.chmod(0o700)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "-U", "labelonce", "-A", "trust", "-N", "-E", "UTF8", "--locale=C")
        self.url = f"postgresql://labelonce:{SECRET}@127.0.0.1:{self.port}/postgres"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = [*self._tool("postgres"), "-p", str(self.port), "-k", str(self.folder)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"]
        with (self.folder / "log").open("ab") as sink:
            self.process = subprocess.Popen(command, stdout=sink, stderr=sink, user=self._user, cwd=self.folder)
        self.wait()

    def wait(self) -> None:
        """Wait until it answers."""
        import psycopg

        for _ in range(600):
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "log").read_text()
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError((self.folder / "log").read_text())

    def stop(self, how: int = signal.SIGINT) -> None:
        """Stop without waiting for clients: SIGINT is a fast shutdown, SIGQUIT an immediate one, as after a crash."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None

    def empty(self) -> str:
        """Drop all tables, and return the URL."""
        import psycopg

        with psycopg.connect(self.url) as connection:
            others = "pid <> pg_backend_pid() AND datname = 'postgres'"
            connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return self.url

    def close(self) -> None:
        """Stop, and remove everything."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _tool(self, name: str) -> list[str]:
        return [str(TOOLS[-1].with_name(name)), "-D", str(self.folder / "data")]

    def _run(self, tool: str, *options: str) -> None:
        subprocess.run([*self._tool(tool), *options], check=True, capture_output=True, user=self._user, cwd=self.folder)
