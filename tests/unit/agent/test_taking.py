"""Links and codes, and that each is taken once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.mail_tool import LINK, Bench, mail

CODE_SUBJECT = "Your login code"


def taken(bench: Bench, body: str, *, html: str = "", kind: str = "link") -> tuple[str, str, str | None]:
    run = bench.open() if kind == "link" else bench.open("login-1", "login_code")
    subject = "Confirm your account" if kind == "link" else CODE_SUBJECT
    bench.deliver(run, body=body, html=html, subject=subject)
    result = bench.wait_out(run, deadline_seconds=6, take=kind)
    value = (result.artifact.verification_url or result.artifact.code) if result.artifact else None
    return str(result.state), result.reason, value


@pytest.mark.parametrize(
    "body",
    [
        f"Open {LINK}.",
        f"Open <{LINK}>, please",
        f"({LINK})",
        f"Two times the same: {LINK} and {LINK}",
        f"Ours {LINK} and theirs https://help.acme.example/verify/1",
    ],
)
def test_the_one_allowed_link_is_taken(bench: Bench, body: str) -> None:
    assert taken(bench, body) == ("found", "matched", LINK)


def test_a_link_of_an_html_mail_is_taken_whole(bench: Bench) -> None:
    long = f"{LINK}?a=1&amp;t={'x' * 500}"
    assert taken(bench, "", html=f'<p>Please <a href="{long}">confirm</a></p>')[2] == long.replace("&amp;", "&")


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("nothing here", "no_link"),
        ("https://app.acme.example.evil.example/verify/1", "link_not_allowed"),
        ("https://evil.example/verify/1", "link_not_allowed"),
        ("https://app.acme.example@evil.example/verify/1", "link_not_allowed"),
        ("https://user@app.acme.example/verify/1", "link_not_allowed"),
        ("http://app.acme.example/verify/1", "link_not_allowed"),
        ("https://app.acme.example:8443/verify/1", "link_not_allowed"),
        ("https://app.acme.example/other/1", "link_not_allowed"),
        ("https://xn--pp-bja.acme.example/verify/1", "link_not_allowed"),
        ("https://app.acmé.example/verify/1", "link_not_allowed"),
        ("https://evil.example/?u=https://app.acme.example/verify/1", "link_not_allowed"),
        ("https://app.acme.example\\@evil.example/verify/1", "link_not_allowed"),
        (f"{LINK} https://app.acme.example/verify/other", "several_links"),
    ],
)
def test_any_other_link_is_for_a_person(bench: Bench, link: str, reason: str) -> None:
    assert taken(bench, f"Open {link} now") == ("needs_review", reason, None)


def test_the_code_is_taken_and_not_its_neighbours(bench: Bench) -> None:
    body = "Order 20261130 of 2026. Your login code: 482913. Valid for 15 minutes, until 09:15.\r\n"
    assert taken(bench, body, kind="code") == ("found", "matched", "482913")


@pytest.mark.parametrize(
    ("body", "reason"),
    [("No digits.\r\n", "no_code"), ("Code 482913, new code 482914.\r\n", "several_codes")],
)
def test_no_code_or_two_are_for_a_person(bench: Bench, body: str, reason: str) -> None:
    assert taken(bench, body, kind="code") == ("needs_review", reason, None)


def test_a_pattern_that_would_run_for_ever_is_stopped(bench_of: Callable[..., Bench]) -> None:
    bench = bench_of(purposes__login_code__take__code={"pattern": "(?P<code>(1+)+)x", "deliver": "value"})
    assert taken(bench, "code " + "1" * 60 + "\r\n", kind="code") == ("needs_review", "code_rule_too_slow", None)


# ------------------------------------------------------------ once


def test_a_second_wait_does_not_find_the_message_again(bench: Bench) -> None:
    run = bench.open()
    bench.deliver(run)
    assert bench.wait(run).state == "found"
    second = bench.wait_out(run, deadline_seconds=6)
    assert (second.state, second.reason) == ("timeout", "only_already_consumed")


def test_a_wait_that_found_says_so_again_and_takes_nothing_new(bench: Bench) -> None:
    """The reply may have been lost: the same wait_id gives the same answer, the artifact in it."""
    run = bench.open()
    bench.deliver(run)
    first = bench.wait(run, take="link")
    again = bench.wait(run, take="link", wait_id=first.wait_id)
    assert (again.state, again.reason) == ("found", "accepted_before")
    assert again.artifact == first.artifact
    assert again.accepted is not None
    assert first.accepted is not None
    assert again.accepted.message_id == first.accepted.message_id
    assert len(bench.ledger.takings_of("signup-1842", 1)) == 1


def test_take_takes_from_the_accepted_message_once(bench: Bench) -> None:
    run = bench.open()
    request = {"run_id": "signup-1842", "mailbox_id": run.mailbox_id, "kind": "link"}
    assert (bench.tool.take(request).state, bench.tool.take(request).reason) == ("not_found", "nothing_accepted_yet")
    bench.deliver(run)
    bench.wait(run)
    first, second = bench.tool.take(request), bench.tool.take(request)
    assert first.artifact is not None
    assert first.artifact.verification_url == LINK
    assert (second.state, second.reason, second.retryable) == ("rejected", "already_taken", False)


def test_a_handle_is_redeemed_once_by_its_own_run(bench_of: Callable[..., Bench]) -> None:
    bench = bench_of(purposes__verify_signup__take__link={"hosts": ["app.acme.example"], "deliver": "handle"})
    run = bench.open()
    bench.open("signup-2")
    bench.deliver(run)
    result = bench.wait(run, take="link")
    assert result.artifact is not None
    assert result.artifact.verification_url is None
    assert LINK not in result.model_dump_json()
    assert "link" in result.withheld
    handle = result.artifact.handle
    assert bench.tool.redeem({"run_id": "signup-2", "handle": handle})[0].reason == "unknown_handle"
    assert bench.tool.redeem({"run_id": "signup-1842", "handle": handle})[1] == LINK
    again, value = bench.tool.redeem({"run_id": "signup-1842", "handle": handle})
    assert (again.reason, value) == ("already_redeemed", None)


def test_a_handle_ends_with_the_run(bench_of: Callable[..., Bench]) -> None:
    bench = bench_of(purposes__verify_signup__take__link={"hosts": ["app.acme.example"], "deliver": "handle"})
    run = bench.open()
    bench.deliver(run)
    result = bench.wait(run, take="link")
    assert result.artifact is not None
    bench.clock.advance(1000)
    ended, value = bench.tool.redeem({"run_id": "signup-1842", "handle": result.artifact.handle})
    assert (ended.state, value) == ("expired", None)


def test_an_indicator_says_that_it_is_there_and_no_more(bench_of: Callable[..., Bench]) -> None:
    bench = bench_of(purposes__verify_signup__take__link={"hosts": ["app.acme.example"], "deliver": "indicator"})
    run = bench.open()
    bench.deliver(run)
    result = bench.wait(run, take="link")
    assert result.artifact is not None
    assert (result.artifact.host, result.artifact.length) == ("app.acme.example", len(LINK))
    assert (result.artifact.verification_url, result.artifact.handle) == (None, None)


def test_a_message_that_changed_since_it_was_accepted_gives_nothing(bench: Bench) -> None:
    """Not possible on an honest server; on another one it is noticed."""
    run = bench.open()
    uid = bench.deliver(run)
    bench.wait(run)
    folder = bench.world.folders["INBOX"]
    folder.mails[:] = [type(m)(m.uid, mail(run.address, body="New"), m.received) for m in folder.mails if m.uid == uid]
    result = bench.tool.take({"run_id": "signup-1842", "mailbox_id": run.mailbox_id, "kind": "link"})
    assert (result.state, result.reason) == ("needs_review", "message_changed")


def test_a_renumbered_folder_ends_the_run(bench: Bench) -> None:
    run = bench.open()
    bench.world.renumber()
    result = bench.wait(run)
    assert (result.state, result.reason, result.next_action) == ("rejected", "mailbox_renumbered", "open_new_run")
