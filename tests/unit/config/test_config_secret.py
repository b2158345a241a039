"""Where secrets come from, and that nothing shows them."""

from __future__ import annotations

import sys
import time
import types
from pathlib import Path

import pytest

from triage.config import secret as secret_module
from triage.config.secret import Secret, SecretSpec
from triage.domain.errors import ConfigError
from triage.redact import redact

LABEL = "config/triage.yaml:31: accounts[0].password"


def make(kind: secret_module.SecretKind, source: str, **more: object) -> Secret:
    return Secret(SecretSpec(kind, source), label=LABEL, **more)  # type: ignore[arg-type]


def refusal(secret: Secret) -> str:
    with pytest.raises(ConfigError) as caught:
        secret.get()
    return str(caught.value).removeprefix(f"{LABEL}: ")


def test_a_secret_never_shows_in_repr_or_str() -> None:
    for secret in (Secret.of("correct horse"), make("command", "echo correct horse")):
        assert "horse" not in f"{secret!r} {secret} {secret.spec!r}"


def test_a_fetched_secret_is_taken_out_of_logs_from_then_on() -> None:
    assert redact("pw battery-staple-77") == "pw battery-staple-77"
    Secret.of("battery-staple-77").get()
    assert redact("pw battery-staple-77") == "pw [hidden]"


def test_from_the_environment() -> None:
    assert make("env", "PW", environ={"PW": "s3cret value"}).get() == "s3cret value"
    assert refusal(make("env", "PW", environ={})) == (
        "the environment variable PW is not set; set it before starting triage"
    )


def test_from_a_file_without_its_last_line_break(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("s3cret \n", "utf-8")
    assert make("file", "pw", directory=tmp_path).get() == "s3cret "


def test_a_rotated_file_is_picked_up(tmp_path: Path) -> None:
    secret = make("file", "pw", directory=tmp_path)
    for value in ("first-one", "second-one"):
        (tmp_path / "pw").write_text(value, "utf-8")
        assert secret.get() == value


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "gave nothing"),
        (b"\n", "gave nothing"),
        (b"\xff\xfe", "did not give UTF-8 text"),
        (b"x" * 70_000, "is too large to be a secret"),
    ],
)
def test_a_file_that_holds_no_secret_is_told(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "pw").write_bytes(content)
    assert refusal(make("file", "pw", directory=tmp_path)) == f"the file {tmp_path}/pw {said}"


def test_a_file_that_everybody_can_read_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "pw"
    path.write_text("x", "utf-8")
    path.chmod(0o644)
    warning = make("file", str(path)).warning()
    assert warning == f"{LABEL}: every user of this machine can read {path}; chmod 600 it"
    path.chmod(0o600)
    assert make("file", str(path)).warning() is None
    assert make("file", str(tmp_path / "missing")).warning() is None


def test_from_the_first_line_of_a_command() -> None:
    assert make("command", f"{sys.executable} -c \"print('line one'); print('url: x')\"").get() == "line one"


def test_a_command_is_not_given_to_a_shell(tmp_path: Path) -> None:
    assert make("command", "echo $HOME; touch here", directory=tmp_path).get() == "$HOME; touch here"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("false", "the command false failed (exit 1); run it by hand to see why"),
        ("true", "the command true gave nothing"),
        ("no-such-command-here x", "the command no-such-command-here cannot be run (No such file or directory)"),
        ("sh -c 'echo hunter2; echo hunter2 >&2; exit 3'", "the command sh failed (exit 3); run it by hand to see why"),
    ],
)
def test_a_command_that_fails_is_told_without_its_output(
    line: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert refusal(make("command", line)) == said
    assert capfd.readouterr() == ("", "")


def test_a_command_that_hangs_is_ended_with_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_module, "COMMAND_TIMEOUT_S", 0.2)
    began = time.monotonic()
    assert "gave no answer within" in refusal(make("command", "sh -c 'sleep 30 & sleep 30'"))
    assert time.monotonic() - began < 5


def test_without_the_keyring_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert "the Python package keyring is not installed" in refusal(make("keyring", "mail"))


def test_from_the_keyring_under_the_account_s_user(monkeypatch: pytest.MonkeyPatch) -> None:
    class KeyringError(Exception):
        pass

    def get_password(service: str, user: str) -> str | None:
        if service == "locked":
            raise KeyringError("hunter2")
        return {("mail", "ana"): "from the keyring"}.get((service, user))

    errors = types.ModuleType("keyring.errors")
    errors.KeyringError = KeyringError  # type: ignore[attr-defined]
    keyring = types.ModuleType("keyring")
    keyring.get_password = get_password  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)

    assert make("keyring", "mail", user="ana").get() == "from the keyring"
    assert "has no entry for service mail" in refusal(make("keyring", "mail", user="eva"))
    assert refusal(make("keyring", "locked", user="ana")) == "the keyring cannot be read (KeyringError)"
