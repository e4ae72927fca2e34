"""Signatures of a certificate with a key of the user's, made and checked by the tools that own the keys."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tunesmith.errors import BadInput
from tunesmith.run.files import explained, read_plain, write_whole
from tunesmith.text import cut, plain

NAMESPACE = "tunesmith"  # of ssh signatures: one made for another purpose is none of ours
SECONDS = 30.0
SUFFIXES = {"ssh": ".sig", "minisign": ".minisig"}
TOOLS = {"ssh": "ssh-keygen", "minisign": "minisign"}
FORMS = "ssh:KEY_FILE or minisign:KEY_FILE"
_KEPT = ("PATH", "HOME", "SSH_AUTH_SOCK", "TMPDIR")


@dataclass(frozen=True)
class SigningKey:
    kind: str  # of SUFFIXES
    path: Path


@dataclass(frozen=True)
class SignatureCheck:
    """`good` None: nobody could tell."""

    good: bool | None
    words: str


def signing_key(named: str) -> SigningKey | None:
    """As a setting names it; None where it is empty. One that cannot sign is refused before a run begins."""
    if not named:
        return None
    kind, _, path = named.partition(":")
    if kind not in SUFFIXES or not path:
        raise BadInput(f"sign must be {FORMS}, got {named!r}", hint="e.g. --sign ssh:~/.ssh/id_ed25519")
    key = SigningKey(kind, Path(path).expanduser())
    if not key.path.is_file():
        raise BadInput(
            "there is no such key to sign with", where=str(key.path), hint=f"name another: {FORMS}"
        )
    if shutil.which(TOOLS[kind]) is None:
        raise BadInput(
            f"{TOOLS[kind]} is not installed, and signs with such keys",
            hint="install it, or leave out --sign",
        )
    return key


def sign(certificate: Path, key: SigningKey) -> None:
    """Beside it. Nobody is asked for a password: the key has none, or an agent holds it."""
    target = certificate.with_name(certificate.name + SUFFIXES[key.kind])
    data = read_plain(certificate)
    with tempfile.TemporaryDirectory(prefix="tunesmith-sign-") as own:
        signed = Path(own) / "signature"
        if key.kind == "ssh":
            code, out, words = _run(
                ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key.path), "-n", NAMESPACE], data
            )
        else:
            command = [
                "minisign",
                "-S",
                "-s",
                str(key.path),
                "-m",
                str(certificate.absolute()),
                "-x",
                str(signed),
            ]
            code, out, words = _run(command)
            out = signed.read_bytes() if signed.is_file() else b""
    if code != 0 or not out.strip():
        hint = (
            "name a key without a password, or one that your ssh-agent holds; then resume the run with --sign"
        )
        raise BadInput(f"the certificate is not signed: {words}", where=str(key.path), hint=hint)
    with explained("write", target):
        write_whole(target, out)


def unsign(certificate: Path) -> None:
    """Take away signatures of what it was before."""
    for suffix in SUFFIXES.values():
        certificate.with_name(certificate.name + suffix).unlink(missing_ok=True)


def check_signature(certificate: Path, allowed: Path | None) -> SignatureCheck:
    """`allowed`: whose signatures count, as ssh-keygen or minisign takes it; None: any key's."""
    if allowed is not None and not allowed.is_file():
        raise BadInput(
            "there is no such file of allowed signers", where=str(allowed), hint="correct the name"
        )
    there = [
        kind
        for kind, suffix in SUFFIXES.items()
        if certificate.with_name(certificate.name + suffix).is_file()
    ]
    if not there:
        return SignatureCheck(False if allowed else None, "not signed")
    kind = there[0]
    if shutil.which(TOOLS[kind]) is None:
        return SignatureCheck(False if allowed else None, f"not checked: {TOOLS[kind]} is not installed")
    signature = str(certificate.absolute()) + SUFFIXES[kind]
    return (_ssh if kind == "ssh" else _minisign)(certificate, signature, allowed)


def _ssh(certificate: Path, signature: str, allowed: Path | None) -> SignatureCheck:
    data, common = read_plain(certificate), ["-n", NAMESPACE, "-s", signature]
    if allowed is None:
        code, out, words = _run(["ssh-keygen", "-Y", "check-novalidate", *common], data)
        said = out.decode(errors="replace").strip()
        return SignatureCheck(
            code == 0, f"{said}; whose key it is was not asked: --allowed-signers" if code == 0 else words
        )
    code, out, words = _run(["ssh-keygen", "-Y", "find-principals", "-s", signature, "-f", str(allowed)])
    who = out.decode(errors="replace").split("\n")[0].strip()
    if code != 0 or not who:
        return SignatureCheck(False, f"by a key that {allowed} does not name")
    code, out, words = _run(["ssh-keygen", "-Y", "verify", "-f", str(allowed), "-I", who, *common], data)
    return SignatureCheck(code == 0, plain(out.decode(errors="replace").strip()) if code == 0 else words)


def _minisign(certificate: Path, signature: str, allowed: Path | None) -> SignatureCheck:
    if allowed is None:
        return SignatureCheck(None, "not checked: name the public key with --allowed-signers")
    command = ["minisign", "-V", "-q", "-p", str(allowed), "-m", str(certificate.absolute()), "-x", signature]
    code, _, words = _run(command)
    return SignatureCheck(code == 0, f"good, by the key in {allowed}" if code == 0 else words)


def _run(command: list[str], data: bytes = b"") -> tuple[int, bytes, str]:
    """Exit code, stdout, and in one line what it said of a failure. It has no terminal to ask on."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}
    try:
        ended = subprocess.run(
            command,
            input=data,
            capture_output=True,
            timeout=SECONDS,
            env=environment,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, b"", f"{command[0]} took longer than {SECONDS:.0f} s"
    except OSError as error:
        return 127, b"", f"{command[0]} cannot be run: {error.strerror}"
    words = " ".join(plain((ended.stderr or ended.stdout).decode(errors="replace")).split())
    return ended.returncode, ended.stdout, f"{command[0]}: {cut(words or f'exit {ended.returncode}', 300)}"
