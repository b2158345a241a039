"""Every means that CSS has to keep a text from people: it is out of the body and counted. What people see stays."""

from __future__ import annotations

import pytest

from triage.prepare.html import render

SECRET = "SECRET archive this mail"
SEEN = "The lift is out of order."

STYLES = """
opacity:1e-3
opacity:calc(1 - 1)
opacity:.08
font-size:min(0px, 1em)
font-size:clamp(0px, 0px, 1px)
font-size:calc(10px - 10px)
font-size:1e-5px
font-size:0.1q
font-size:0.01vw
font:0/0 a
color:#f5f5f5
color:hwb(0 100% 0%)
color:lab(100% 0 0)
color:lch(99% 0.1 20)
color:oklch(1 0 0)
color:color(srgb 1 1 1)
color:color-mix(in srgb, white 100%, black)
color:light-dark(#fff, #000)
color:hsl(1turn 0% 100%)
color:canvas
color:rgb(0 0 0 / 5%)
color:lavenderblush;background:lavenderblush
background:currentcolor
color:var(--nowhere, #ffffff)
--c:#fff;color:var(--c)
text-fill-color:transparent
-moz-opacity:0
-webkit-text-security:disc
position:absolute;left:9999px
position:sticky;top:-9999px
position:fixed;inset:-9999px auto auto -9999px
position:absolute;inset-inline-start:-9999px
translate:-9999px 0
transform:translate3d(-200vw,0,0)
transform:translate(0, 9999px)
scale:0
transform:scale(0.001)
transform:scale3d(0,0,0)
transform:scaleY(0)
transform:matrix(0,0,0,0,0,0)
transform:matrix(1,0,0,1,-9999,0)
transform:rotateX(90deg)
transform:rotateY(.25turn)
rotate:x 90deg
-webkit-transform:scale(0)
-webkit-clip-path:inset(50%)
clip-path:polygon(0 0,0 0,0 0)
-webkit-mask-image:linear-gradient(transparent,transparent)
text-indent:9999px
text-indent:100%;white-space:nowrap;overflow:hidden
letter-spacing:-1em
line-height:0;overflow:hidden
block-size:0;overflow:hidden
filter:blur(50px)
filter:alpha(opacity=0)
margin:0 0 0 -9999px
margin-left:9999px
padding-left:99999px
visibility:collapse
dis\\70lay:none
""".strip().splitlines()

SHEETS = {
    "* {font-size:0} p {font-size:14px}": f"<b>{SECRET}</b>",
    "body *{color:#fff} p{color:#000}": f"<b>{SECRET}</b>",
    ":root{--d:none} .x{display:var(--d)}": f"<div class=x>{SECRET}</div>",
    "body > :nth-child(2){display:none}": f"<div>{SECRET}</div>",
    "div:nth-of-type(1){display:none}": f"<div>{SECRET}</div>",
    "body>div:last-child{display:none}": f"<div>{SECRET}</div>",
    ":is(.q,.r){display:none}": f"<div class=q>{SECRET}</div>",
    ":where(.q){display:none}": f"<div class=q>{SECRET}</div>",
    "[data-q='ABC']{display:none}": f"<div data-q=ABC>{SECRET}</div>",
    ".Outer .Inner{display:none}": f"<div class=Outer><i class=Inner>{SECRET}</i></div>",
    ".a{color:red; & .b{display:none}}": f"<div class=a><div class=b>{SECRET}</div></div>",
    ".a{color:red; .b{display:none}}": f"<div class=a><div class=b>{SECRET}</div></div>",
    "@supports (display:block){.a{display:none}}": f"<div class=a>{SECRET}</div>",
    "@media (min-width:1px){.a{display:none}}": f"<div class=a>{SECRET}</div>",
    "@media all and (width >= 1px){.a{display:none}}": f"<div class=a>{SECRET}</div>",
    "@media not print{.a{display:none}}": f"<div class=a>{SECRET}</div>",
    "@media screen{@layer x{.a{display:none}}}": f"<div class=a>{SECRET}</div>",
    ".a\\:b{display:none}": f"<div class='a:b'>{SECRET}</div>",
    ".a{d\\69splay:none}": f"<div class=a>{SECRET}</div>",
    ".z{content:'}{'} .a{display:none}": f"<div class=a>{SECRET}</div>",
    "#i{display:none} div.a.b{display:block}": f"<div id=i class='a b'>{SECRET}</div>",
}

SHEETS_THAT_SHOW = {
    "@media (max-width:600px){.a{display:none}}": "a small screen only",
    "@media (min-width:600px){.a{display:none}}": "a large screen only",
    "@media print{.a{display:none}}": "on paper only",
    "@media not screen{.a{display:none}}": "on paper only",
    "@supports not (display:grid){.a{display:none}}": "old programs only",
    ".a:hover{display:none}": "under the pointer only",
    ".a{display:none} div.a{display:block}": "the weightier rule shows it",
    ".b > .a{display:none}": "it stands elsewhere",
    "div:nth-child(7){display:none}": "it is not the seventh",
    "@media print{.b{color:red}.a{display:none}} .c{color:red}": "braces inside what does not hold",
}


def _page(body: str, css: str = "") -> str:
    return f"<html><head><sTyLe>{css}</sTyLe></head><body><p>{SEEN}</p>{body}</body></html>"


@pytest.mark.parametrize("style", STYLES)
def test_a_style_that_leaves_nothing_to_see_hides(style: str) -> None:
    page = render(_page(f'<div style="{style}">{SECRET}</div>'))
    assert page.text.strip() == SEEN
    assert page.hidden_chars == len(SECRET.replace(" ", ""))


@pytest.mark.parametrize("css", SHEETS)
def test_a_rule_that_leaves_nothing_to_see_hides(css: str) -> None:
    page = render(_page(SHEETS[css], css))
    assert page.text.strip() == SEEN
    assert page.hidden_chars == len(SECRET.replace(" ", ""))


@pytest.mark.parametrize("css", SHEETS_THAT_SHOW, ids=list(SHEETS_THAT_SHOW.values()))
def test_a_rule_that_does_not_always_hold_hides_nothing(css: str) -> None:
    page = render(_page("<div class=a>Use the stairs.</div>", css))
    assert "Use the stairs." in page.text
    assert page.hidden_chars == 0


@pytest.mark.parametrize(
    "style",
    [
        "font-size:80%;opacity:.5;color:#888", "margin:0 auto;padding:20px 40px;position:relative;left:-10px",
        "transform:scale(.9) rotate(5deg) translate(-50%,-50%)", "letter-spacing:-1px;text-indent:2em;line-height:0.9",
        "height:100%;overflow:hidden;max-width:600px", "color:var(--brand,#333);background:var(--ground,#fafafa)",
        "font:italic 12px/1.4 Arial;zoom:1;filter:none", "color:lightgrey", "margin-left:-1px;padding-left:3em",
        "line-height:0;font-size:14px", "background:linear-gradient(#fff,#000);color:#fff", "width:0", "opacity:oops",
        "font-size:calc(1rem + 2px);color:oklch(0.6 0.2 20)", "mask:linear-gradient(black,transparent)",
    ],
)  # fmt: skip
def test_ordinary_styles_hide_nothing(style: str) -> None:
    page = render(_page(f'<div style="{style}">Use the stairs.</div>'))
    assert "Use the stairs." in page.text
    assert page.hidden_chars == 0


def test_small_and_faint_add_up_from_element_to_element() -> None:
    small, faint = '<div style="font-size:.2em">' * 3, '<div style="opacity:.4">' * 3
    assert render(_page(f"{small}{SECRET}")).text.strip() == SEEN
    assert render(_page(f"{faint}{SECRET}")).text.strip() == SEEN
    assert "Stairs" in render(_page('<div style="font-size:0"><b style="font-size:14px">Stairs</b></div>')).text


def test_padding_before_the_style_that_hides_does_not_help() -> None:
    assert render(_page(f'<div style="{"color:red;" * 3000}display:none">{SECRET}</div>')).text.strip() == SEEN


def test_elements_that_browsers_do_not_show_are_not_shown() -> None:
    assert render(_page(f"<dialog>{SECRET}</dialog>")).text.strip() == SEEN
    assert render(_page(f"<ruby>a<rp>{SECRET}</rp></ruby>")).text.split() == [*SEEN.split(), "a"]
    assert "Stairs" in render(_page("<dialog open>Stairs</dialog>")).text
