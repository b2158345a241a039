"""Elements of SVG as escaped markup."""

from __future__ import annotations

from markupsafe import Markup, escape

Child = Markup | str


def element(tag: str, *children: Child, **attributes: str | float) -> Markup:
    """`<tag ...>children</tag>`; text is escaped. `class_` is class, `font_size` is font-size."""
    named = "".join(f' {_name(name)}="{escape(_value(value))}"' for name, value in attributes.items())
    return Markup(f"<{tag}{named}>{''.join(escape(child) for child in children)}</{tag}>")  # noqa: S704 - all escaped


def group(*children: Child, **attributes: str | float) -> Markup:
    return element("g", *children, **attributes)


def picture(title: str, describes: str, height: float, *children: Child, kind: str) -> Markup:
    """A whole plot, as wide as its place. `title` and `describes` are what a screen reader says of it."""
    return element(
        "svg",
        element("title", title),
        element("desc", describes),
        *children,
        role="img",
        class_=f"plot {kind}",
        width="100%",
        height=height,
        aria_label=f"{title}. {describes}",
    )


def percent(share: float) -> str:
    """A share of the width as a percentage, kept on the picture."""
    return f"{100 * min(1.0, max(0.0, share)):.2f}%"


def label(text: str, x: str | float, y: float, *, anchor: str = "start", kind: str = "tick") -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor, class_=kind)


def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
