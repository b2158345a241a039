"""A page as a value, and how it becomes HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from triage.report import words
from triage.report.text import harmless, minute, money, truncated
from triage.web.charts.timeline import duration
from triage.web.messages import Response

STATIC_TYPES = {"triage.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Page:
    """A template and what it shows. `section` is the entry of the navigation it belongs to."""

    template: str
    title: str
    section: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    status: HTTPStatus = HTTPStatus.OK


class NotThere(Exception):
    """There is no such page; the message says what was looked for."""


def render(page: Page, **common: Any) -> Response:
    """The page as HTML. `common` is what every page shows."""
    template = _environment().get_template(page.template)
    text = template.render(title=page.title, section=page.section, **common, **page.values)
    return Response(text.encode(), page.status)


@cache
def static_file(name: str) -> bytes:
    return files("triage.web").joinpath("static", name).read_bytes()


@cache
def static_path(name: str) -> str:
    """The address of a static file, which changes when its content does: browsers may keep it for ever."""
    return f"/static/{sha256(static_file(name)).hexdigest()[:12]}/{name}"


def age(seconds: float | None) -> str:
    """How long something has waited: `8 min`, `5 h`, `3 days`."""
    if seconds is None:
        return ""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes / 60:.0f} h" if minutes < 2880 else f"{minutes / 1440:.0f} days"


def whole(number: float) -> str:
    """A number with its thousands set apart by narrow spaces."""
    return f"{number:,.0f}".replace(",", "\u202f")


def portion(value: float | None) -> str:
    """A share as a percentage with a digit more where it is small; a dash where there is none."""
    if value is None:
        return "–"
    return f"{100 * value:.1f}%" if 0 < value < 0.1 else f"{100 * value:.0f}%"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("triage.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "minute": minute,
        "money": money,
        "truncated": truncated,
        "harmless": harmless,
        "spaced": words.spaced,
        "age": age,
        "whole": whole,
        "portion": portion,
        "duration": duration,
        "part": lambda text: quote(str(text), safe=""),
    }
    environment.globals["static"] = static_path
    return environment
