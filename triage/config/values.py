"""The kinds of value a key can take, as pydantic types: text or {env: NAME}, durations, secrets, days, hosts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BeforeValidator, PlainValidator, StringConstraints, ValidationInfo
from pydantic_core import PydanticCustomError

from triage.config.cron import parse_cron
from triage.config.problems import nearest
from triage.config.secret import SecretSpec

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_OR_V4 = r"(?=.{1,253}$)[A-Za-z0-9_][A-Za-z0-9_-]{0,62}(?:\.[A-Za-z0-9_-]{1,63})*\.?"
_HOST = re.compile(rf"{_NAME_OR_V4}|\[?[0-9A-Fa-f:.]{{2,45}}\]?")
_FORMS = "{env: NAME}, {file: PATH}, {command: LINE} or {keyring: SERVICE}"


@dataclass(frozen=True, slots=True)
class Context:
    """What validation may look at besides the file."""

    environ: Mapping[str, str]
    directory: Path


def problem(text: str) -> PydanticCustomError:
    """What is wrong with a value, worded to follow its place: `must be ...`, `needs ...`."""
    return PydanticCustomError("problem", "{text}", {"text": text})


def problem_around(text: str, remedy: str) -> PydanticCustomError:
    """What a whole block lacks, told at the block and not at the key whose validator found it."""
    return PydanticCustomError("problem_around", "{text}: {remedy}", {"text": text, "remedy": remedy})


def _from_env(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, dict):
        return value
    name = value.get("env")
    if set(value) != {"env"} or not isinstance(name, str) or not _ENV_NAME.fullmatch(name):
        raise problem("must be text, or {env: NAME} with the name of an environment variable")
    context = info.context
    assert isinstance(context, Context)
    found = context.environ.get(name, "")
    if not found:
        state = "empty" if name in context.environ else "not set"
        raise problem(f"is to come from the environment variable {name}, which is {state}; set it or write the text")
    return found


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise problem("must be a single line without control characters")
    return text


FromEnv = BeforeValidator(_from_env)
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_one_line), FromEnv]


def _duration(value: Any, info: ValidationInfo) -> timedelta:
    value = _from_env(value, info)
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)\s*(ms|[smhd])", value) if isinstance(value, str) else None
    if match is None:
        raise problem("needs a number with a unit: 10s, 5m, 1h or 90d")
    number, unit = match.groups()
    seconds = float(number) * (0.001 if unit == "ms" else _UNITS[unit])
    if seconds > 100 * 365 * 86_400:
        raise problem("is longer than a hundred years")
    return timedelta(seconds=seconds)


Duration = Annotated[timedelta, PlainValidator(_duration)]


def between(low: timedelta, high: timedelta, words: str) -> AfterValidator:
    """Bounds of a duration; `words` spells them."""

    def check(value: timedelta) -> timedelta:
        if not low <= value <= high:
            raise problem(f"must be from {words}")
        return value

    return AfterValidator(check)


def _secret(value: Any) -> SecretSpec:
    # What was written here may be the secret itself: no message repeats any of it.
    if not isinstance(value, dict):
        raise problem(f"must not be written here; say where it is kept: {_FORMS}")
    known = [kind for kind in ("env", "file", "command", "keyring") if kind in value]
    if len(known) != 1 or len(value) != 1:
        raise problem(f"must be exactly one of {_FORMS}")
    kind = known[0]
    source = value[kind]
    if not isinstance(source, str) or not source.strip():
        raise problem(f"must be text after {kind}:")
    if kind == "env" and not _ENV_NAME.fullmatch(source):
        raise problem("must name an environment variable after env: (letters, digits, _)")
    if kind == "command":
        try:
            shlex.split(source)
        except ValueError:
            raise problem("must be a command line after command: a quote is not closed") from None
    return SecretSpec(kind, source)  # type: ignore[arg-type]  # one of the four words above


SecretSource = Annotated[SecretSpec, PlainValidator(_secret)]


def _day(value: Any, info: ValidationInfo) -> date:
    value = _from_env(value, info)
    if isinstance(value, date):
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise problem("is not a day of the calendar") from None
    raise problem("must be a day such as 2026-11-23, without a time")


Day = Annotated[date, PlainValidator(_day)]


def _text(value: Any, info: ValidationInfo) -> str:
    text = _from_env(value, info)
    if not isinstance(text, str):
        raise problem("must be text; put it in quotes")
    return text.strip()


def _zone(value: Any, info: ValidationInfo) -> ZoneInfo:
    name = _text(value, info)
    with suppress(OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        return ZoneInfo(name)
    found = nearest(name, available_timezones())
    meant = f" (did you mean {found}?)" if found else ""
    raise problem(f"is not a time zone this machine knows{meant}; write one like Europe/Madrid or UTC")


Zone = Annotated[ZoneInfo, PlainValidator(_zone)]


def _cron(value: Any, info: ValidationInfo) -> str:
    try:
        return parse_cron(_text(value, info))
    except ValueError as error:
        raise problem(str(error)) from None


Cron = Annotated[str, PlainValidator(_cron)]


def _host(value: str) -> str:
    if "://" in value:
        raise problem("must be the bare name of the server, without what stands before ://")
    if not _HOST.fullmatch(value):
        raise problem("must be the name or address of a server, such as imap.example.com (the port has its own key)")
    return value


Host = Annotated[Text, AfterValidator(_host)]


@dataclass(frozen=True, slots=True)
class Listen:
    host: str
    port: int


def _listen(value: Any, info: ValidationInfo) -> Listen:
    host, colon, port = _text(value, info).rpartition(":")
    if not colon or not _HOST.fullmatch(host) or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65_535:
        raise problem("must be an address and a port, such as 127.0.0.1:8025")
    return Listen(host.strip("[]"), int(port))


ListenAddress = Annotated[Listen, PlainValidator(_listen)]


def _base_url(value: str) -> str:
    try:
        url = urlsplit(value)
        port_is_right = url.port is None or url.port > 0
    except ValueError:
        port_is_right = False
    if not port_is_right or url.scheme not in {"http", "https"} or not url.hostname:
        raise problem("must be a URL such as https://api.example.com")
    if url.username or url.password or url.query or url.fragment:
        raise problem("must hold only scheme, host, port and path; a key belongs in api_key")
    return value.rstrip("/")


BaseUrl = Annotated[Text, AfterValidator(_base_url)]
