"""The pages in a real Chromium: layout on a phone and a desk, light and dark, without script, by keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from services.chromium import Chromium
from support.premises import wait_until
from support.web_world import HOSTILE, World, served, token

WIDTHS = [(390, 844), (1280, 900)]
SECRET = "a token nobody guesses"
HEAD_COLOUR = "rgb(20, 65, 95)"

TAB_STOPS = """
[...document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]')]
  .filter(e => e.checkVisibility()).length
"""
FOCUSED = """
(() => { const e = document.activeElement, s = getComputedStyle(e);
  return [e.tagName, e.textContent.trim().slice(0, 40), s.outlineStyle, parseFloat(s.outlineWidth)] })()
"""
CLIPPED = """
[...document.querySelectorAll('main *')].filter(e => !e.closest('.sheet') && !e.closest('svg') && !e.closest('.unseen')
  && (e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < -1))
  .map(e => e.outerHTML.slice(0, 120))
"""
SMALL_LETTERS = """
[...document.querySelectorAll('svg text')].filter(e => e.getBoundingClientRect().height < 11).length
"""
OVERLAPPING_LETTERS = """
[...document.querySelectorAll('svg.plot')].flatMap(svg => {
  const all = [...svg.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);
  return all.flatMap(([a, p], i) => all.slice(i + 1).filter(([b, q]) =>
    p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 4 && q.top < p.bottom - 4)
    .map(([b]) => a + ' / ' + b));
})
"""
CONTRAST = """
(() => {
  const shade = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => { x /= 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4 }); return 0.2126*v[0] + 0.7152*v[1] + 0.0722*v[2] };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c) && c !== 'transparent') return c } return 'rgb(255,255,255)' };
  const found = [];
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('svg') && e.tagName !== 'text' || e.closest('.unseen, .skip') || !e.checkVisibility()) continue;
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    if (e.classList.contains('inside')) continue;
    const s = getComputedStyle(e), ink = shade(e.tagName === 'text' ? s.fill : s.color), paper = shade(ground(e));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < 4.5) found.push(e.textContent.trim().slice(0, 30) + ' ' + ratio.toFixed(2));
  }
  return found;
})()
"""


WORDLESS_PLOTS = """
[...document.querySelectorAll('svg')].filter(s => s.ariaHidden !== 'true'
  && !(s.ariaLabel && s.querySelector('title') && s.querySelector('desc'))).length
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """The address of pages over a ledger with a past, and the paths of them all."""
    world = World(tmp_path_factory.mktemp("web"))
    run = world.lived_in()
    key = world.app.ledger.decisions(run.id)[1].message_key
    paths = [
        "/", "/runs", f"/runs/{run.id}", f"/messages/{key}", "/categories", "/categories/team/newsletter", "/cost",
        "/corrections", "/tool", "/tool/signup-1843", "/nothing-here",
    ]  # fmt: skip
    with served(world) as address:
        for path in paths[:-1]:
            wait_until(lambda path=path: shown(address + path))
        wait_until(lambda: b"29 checked" in shown(address + "/"))
        yield address, paths
    world.close()


def shown(address: str) -> bytes:
    """A page, b"" while it says "not yet"."""
    try:
        with urlopen(address) as answer:
            text: bytes = answer.read()
    except HTTPError as refused:
        refused.close()
        return b""
    return text


@pytest.mark.parametrize(("width", "height"), WIDTHS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_fits_and_complains_of_nothing(
    browser: Chromium, site: tuple[str, list[str]], width: int, height: int, dark: bool
) -> None:
    """Nothing runs over the edge, no letters lie on others or are too small, ink stands out from paper, the console is
    silent and nothing is asked of another server."""
    address, paths = site
    with browser.tab(width, height, dark=dark) as tab:
        for path in paths:
            status = tab.open(address + path)
            assert status == (404 if path == "/nothing-here" else 200)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, path
            assert tab.evaluate(CLIPPED) == [], path
            assert tab.evaluate(SMALL_LETTERS) == 0, path
            assert tab.evaluate(OVERLAPPING_LETTERS) == [], path
            assert tab.evaluate(CONTRAST) == [], path
            assert [r for r in tab.requests() if not r.startswith(address)] == []
            assert [c for c in tab.complaints() if "404" not in c] == [], path


def test_light_and_dark_differ(browser: Chromium, site: tuple[str, list[str]]) -> None:
    papers = []
    for dark in (False, True):
        with browser.tab(dark=dark) as tab:
            tab.open(site[0] + "/")
            papers.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert papers[0] != papers[1]


def test_pages_say_the_same_without_script(browser: Chromium, site: tuple[str, list[str]]) -> None:
    address, paths = site
    with browser.tab() as tab, browser.tab(javascript=False) as still:
        for path in paths:
            tab.open(address + path)
            still.open(address + path)
            assert still.evaluate("document.scripts.length") == 0
            assert tab.evaluate("document.body.innerText") == still.evaluate("document.body.innerText")


def test_every_link_and_field_is_reached_with_the_tab_key_and_seen_when_it_is(
    browser: Chromium, site: tuple[str, list[str]]
) -> None:
    address, paths = site
    with browser.tab() as tab:
        for path in paths:
            tab.open(address + path)
            stops = tab.evaluate(TAB_STOPS)
            reached = []
            for _ in range(stops):
                tab.press("Tab", 9)
                reached.append(tab.evaluate(FOCUSED))
            assert reached[0][:2] == ["A", "Skip to the content"]
            assert len(reached) == stops
            assert all(tag != "BODY" for tag, *_ in reached), path
            assert all(style == "solid" and width >= 2 for *_, style, width in reached), path


def test_the_skip_link_leads_to_the_content(browser: Chromium, site: tuple[str, list[str]]) -> None:
    with browser.tab() as tab:
        tab.open(site[0] + "/")
        tab.press("Tab", 9)
        tab.command(
            "Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r"
        )
        assert tab.evaluate("document.activeElement.id") == "content"


def test_landmarks_and_headings_are_in_order(browser: Chromium, site: tuple[str, list[str]]) -> None:
    address, paths = site
    with browser.tab() as tab:
        for path in paths:
            tab.open(address + path)
            assert tab.evaluate("['header', 'main', 'footer', 'h1'].map(n => document.querySelectorAll("
                                "n === 'header' ? 'body > header' : n).length)") == [1, 1, 1, 1], path  # fmt: skip
            levels = tab.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
            assert all(b - a <= 1 for a, b in pairwise(levels)), (path, levels)
            assert tab.evaluate("document.documentElement.lang") == "en"


def test_every_plot_has_words_and_every_field_a_name(browser: Chromium, site: tuple[str, list[str]]) -> None:
    address, paths = site
    with browser.tab() as tab:
        for path in paths:
            tab.open(address + path)
            assert tab.evaluate(WORDLESS_PLOTS) == 0, path
            assert tab.evaluate("[...document.querySelectorAll('input')].every(i => i.labels.length === 1)")
            assert tab.evaluate("new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size === "
                                "document.querySelectorAll('[id]').length"), path  # fmt: skip


def test_what_came_out_of_a_mail_is_text(browser: Chromium, site: tuple[str, list[str]]) -> None:
    address, paths = site
    with browser.tab() as tab:
        tab.open(address + paths[2])
        assert tab.evaluate("document.querySelectorAll('main img, main script').length") == 0
        assert "<script>alert" in tab.evaluate("document.body.innerText")
        assert HOSTILE not in tab.evaluate("document.body.innerText")


def test_script_that_got_into_a_page_after_all_is_not_run(browser: Chromium, site: tuple[str, list[str]]) -> None:
    """The second line of defence: the policy of the response, not the escaping of the template."""
    with browser.tab() as tab:
        tab.open(site[0] + "/")
        tab.evaluate("document.body.insertAdjacentHTML('beforeend', '<p id=x onclick=\"window.hit = 1\">x</p>'); "
                     "document.getElementById('x').click()")  # fmt: skip
        tab.evaluate("(() => { const s = document.createElement('script'); s.textContent = 'window.hit = 2'; "
                     "document.body.append(s) })()")  # fmt: skip
        assert tab.evaluate("window.hit") is None
        assert any("Content Security Policy" in c for c in tab.complaints())


def test_a_browser_shows_the_token_as_a_password(browser: Chromium, tmp_path: Path) -> None:
    world = World(tmp_path, token=token(SECRET))
    world.run({})
    with served(world) as address:
        with browser.tab() as tab, pytest.raises(RuntimeError, match="ERR_INVALID_AUTH_CREDENTIALS"):
            tab.open(address + "/")
        with browser.tab() as tab:
            assert tab.open(address.replace("//", f"//me:{quote(SECRET)}@") + "/") == 200
            assert tab.evaluate("getComputedStyle(document.querySelector('.top')).backgroundColor") == HEAD_COLOUR
            assert tab.open(address + "/runs") == 200
    world.close()


def test_every_link_leads_somewhere(browser: Chromium, site: tuple[str, list[str]]) -> None:
    address, paths = site
    seen: set[str] = set()
    with browser.tab() as tab:
        for path in paths[:-1]:
            tab.open(address + path)
            seen.update(tab.evaluate("[...document.querySelectorAll('a')].map(a => a.href)"))
        assert len(seen) > 20
        pages = [link for link in sorted(seen) if "#" not in link]
        for link in pages:
            wait_until(lambda link=link: tab.open(link) != 503)
        broken = [link for link in pages if tab.open(link) != 200]
    assert broken == []
