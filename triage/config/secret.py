"""Secrets: named in the configuration, fetched when needed, never shown."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol

from triage.config.problems import placed
from triage.domain.errors import ConfigError
from triage.redact import conceal

COMMAND_TIMEOUT_S = 20.0
MAX_SECRET_BYTES = 65_536

SecretKind = Literal["env", "file", "command", "keyring", "value"]


class Credential(Protocol):
    """Something that can be asked for a secret at the moment of use."""

    def get(self) -> str:
        """The secret now. Raises ConfigError, which says where it was to come from and never what it is."""
        ...

    @property
    def sources(self) -> tuple[Secret, ...]:
        """The secrets it is made from."""
        ...


@dataclass(frozen=True, slots=True)
class SecretSpec:
    """A secret as written: which kind of source, and its name, path, command line or keyring service."""

    kind: SecretKind
    source: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret's source. Two secrets are equal when they come from the same source.

    `label` says for messages where it was configured, e.g. `config/triage.yaml:31: accounts[0].password`. `user` is
    the name a keyring files it under. Relative files are looked for in `directory`.
    """

    spec: SecretSpec
    label: str = field(default="this secret", compare=False)
    user: str = ""
    directory: Path = field(default=Path(), compare=False)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, compare=False, repr=False)

    @classmethod
    def of(cls, value: str) -> Secret:
        """A secret that is known already: the demo's, a test's."""
        return cls(SecretSpec("value", value))

    def __repr__(self) -> str:
        return f"Secret({self.spec.kind})"

    __str__ = __repr__

    def get(self) -> str:
        """The secret, fetched anew: a rotated file or an expiring token is picked up.

        Raises ConfigError when its source is missing, fails, or is empty.
        """
        value = self._fetch()
        conceal(value)
        return value

    @property
    def sources(self) -> tuple[Secret, ...]:
        return (self,)

    def _fetch(self) -> str:
        match self.spec.kind:
            case "env":
                return self._from_env()
            case "file":
                return self._from_file()
            case "command":
                return self._from_command()
            case "keyring":
                return self._from_keyring()
            case "value":
                return self.spec.source

    def warning(self) -> str | None:
        """What is unwise about the source: a file that everybody on this machine can read."""
        if self.spec.kind != "file":
            return None
        path = self._path()
        with suppress(OSError, ValueError):
            mode = path.stat()
            if stat.S_ISREG(mode.st_mode) and mode.st_mode & stat.S_IROTH:
                return f"{self.label}: every user of this machine can read {path}; chmod 600 it"
        return None

    def _fail(self, text: str) -> ConfigError:
        return ConfigError(f"{self.label}: {text}")

    def _from_env(self) -> str:
        name = self.spec.source
        value = self.environ.get(name, "")
        if not value:
            state = "empty" if name in self.environ else "not set"
            raise self._fail(f"the environment variable {name} is {state}; set it before starting triage")
        return value

    def _path(self) -> Path:
        return placed(self.directory, self.spec.source)

    def _from_file(self) -> str:
        path = self._path()
        try:
            with path.open("rb") as file:
                raw = file.read(MAX_SECRET_BYTES + 1)
        except (OSError, ValueError) as error:
            raise self._fail(
                f"the file {path} cannot be read ({getattr(error, 'strerror', None) or 'error'})"
            ) from None
        if len(raw) > MAX_SECRET_BYTES:
            raise self._fail(f"the file {path} is too large to be a secret")
        return self._text(raw, f"the file {path}").rstrip("\r\n") or self._empty(f"the file {path}")

    def _from_command(self) -> str:
        argv = shlex.split(self.spec.source)
        name = argv[0]
        try:
            process = subprocess.Popen(  # noqa: S603 - the operator's own command, run without a shell
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self.directory,
                start_new_session=True,
            )
        except OSError as error:
            raise self._fail(f"the command {name} cannot be run ({error.strerror or 'error'})") from None
        with process:
            try:
                raw, _ = process.communicate(timeout=COMMAND_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise self._fail(f"the command {name} gave no answer within {COMMAND_TIMEOUT_S:.0f} s") from None
        if process.returncode != 0:
            raise self._fail(f"the command {name} failed (exit {process.returncode}); run it by hand to see why")
        text = self._text(raw, f"the command {name}")
        return (text.splitlines() or [""])[0] or self._empty(f"the command {name}")

    def _from_keyring(self) -> str:
        try:
            keyring = import_module("keyring")
            keyring_error = import_module("keyring.errors").KeyringError
        except ImportError:
            text = "the Python package keyring is not installed; install it beside triage, or use env, file or command"
            raise self._fail(text) from None
        service = self.spec.source
        try:
            value: str | None = keyring.get_password(service, self.user)
        except keyring_error as error:
            raise self._fail(f"the keyring cannot be read ({type(error).__name__})") from None
        if not value:
            raise self._fail(f"the keyring has no entry for service {service} and this user; keyring set adds one")
        return value

    def _text(self, raw: bytes, source: str) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self._fail(f"{source} did not give UTF-8 text") from None

    def _empty(self, source: str) -> str:
        raise self._fail(f"{source} gave nothing")
