"""Sound files: where they are found, what they become, how they are read again."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triage.config.load import check_secrets, find_config_dir, load, load_categories, reload
from triage.config.oauth import RefreshedToken
from triage.config.secret import Secret
from triage.config.settings import is_loopback
from triage.domain.category import Action
from triage.domain.errors import ConfigError

REPOSITORY = Path(__file__).parents[3]
MINIMAL = """\
accounts:
  - name: team
    host: imap.example.com
    username: Team@example.com
    password: {env: PASSWORD}
    since: 2026-11-23
"""
CATEGORIES = """\
categories:
  - {id: a, name: A, criteria: "Is\\n  an a."}
  - {id: b, name: B, criteria: Is a b., examples: ["one", "two"], action: archive, floor: 0.8, like: receipt}
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "triage.yaml").write_text(MINIMAL, "utf-8")
    (tmp_path / "categories.yaml").write_text(CATEGORIES, "utf-8")
    return tmp_path


def write(directory: Path, text: str) -> Path:
    (directory / "triage.yaml").write_text(text, "utf-8")
    return directory


# ---------------------------------------------------------------- finding


def test_the_directory_given_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [tmp_path / name for name in ("given", "env", "work/config", "home/.config/triage")]
    for place in places:
        place.mkdir(parents=True)
        write(place, MINIMAL)
    monkeypatch.chdir(tmp_path / "work")
    home = {"HOME": str(tmp_path / "home")}
    env = {**home, "TRIAGE_CONFIG": str(places[1])}

    assert find_config_dir(str(places[0]), env) == places[0]
    assert find_config_dir(None, env) == places[1]
    assert find_config_dir(None, home) == Path("config")
    (places[2] / "triage.yaml").unlink()
    assert find_config_dir(None, home) == places[3]


def test_where_it_looked_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        find_config_dir(None, {"HOME": str(tmp_path)})
    assert str(caught.value) == (
        f"no triage.yaml found; looked in config, {tmp_path}/.config/triage, /etc/triage. "
        "`triage init` writes one, --config DIR names one"
    )


def test_a_named_directory_without_the_file_is_not_replaced_by_another(directory: Path, tmp_path: Path) -> None:
    """A misspelt --config must not quietly run some other configuration."""
    with pytest.raises(ConfigError, match=r"--config .*: has no triage.yaml"):
        find_config_dir(str(tmp_path / "nowhere"), {"TRIAGE_CONFIG": str(directory)})
    with pytest.raises(ConfigError, match=r"TRIAGE_CONFIG .*: is a file; name the directory"):
        find_config_dir(None, {"TRIAGE_CONFIG": str(directory / "triage.yaml")})


# ---------------------------------------------------------------- defaults


def test_every_key_has_its_default(directory: Path) -> None:
    s = load(directory, {})
    assert (s.log.level, s.log.format) == ("info", "auto")
    assert s.http is not None
    assert (s.http.host, s.http.port, s.http.token) == ("127.0.0.1", 8025, None)
    assert (s.retention.records, s.retention.receipts) == (timedelta(days=90), timedelta(days=30))
    assert s.record_subjects is False
    d = s.decision
    assert (d.floor, d.offer_none, d.concurrency, d.deadline_s) == (0.5, True, 20, 20.0)
    assert (d.spend_cap_usd_per_day, d.on_outage, d.body_chars) == (2.0, "leave", 6000)
    assert [(p.provider, p.archive_floor, p.may_archive) for p in d.chain] == [("embedded", 0.7, True)]
    a = s.accounts[0]
    assert (a.port, a.security, a.ca_file, a.auth) == (993, "tls", None, "password")
    assert (a.inbox, a.archive, a.labels, a.mode, a.batch, a.order) == (
        "INBOX",
        "auto",
        "auto",
        "act",
        20,
        "oldest_first",
    )
    assert (a.schedule.cron, a.schedule.timezone, a.schedule.enabled) == ("*/5 * * * *", ZoneInfo("UTC"), True)
    assert (a.since, a.thread_search, a.addresses) == (date(2026, 11, 23), "narrow", ("team@example.com",))
    assert s.account("TEAM") is a
    assert s.account("nobody") is None


def test_categories_become_the_domain_s_values(directory: Path) -> None:
    cs = load_categories(directory / "categories.yaml", {})
    assert (cs.parent, cs.fallback_id, cs.fallback_name) == ("Triage", "unclassified", "Unclassified")
    a, b = cs.categories
    assert (a.criteria, a.action, a.floor, a.like) == ("Is an a.", Action.KEEP, None, None)
    assert (b.examples, b.action, b.floor, b.like) == (("one", "two"), Action.ARCHIVE, 0.8, "receipt")


@pytest.mark.parametrize("block", ["log", "http", "retention", "decision"])
def test_a_block_whose_lines_are_all_commented_out_means_the_defaults(directory: Path, block: str) -> None:
    plain = load(directory, {})
    assert load(write(directory, f"{block}:\n  # x: 1\n{MINIMAL}"), {}) == plain


def test_starttls_has_its_own_port(directory: Path) -> None:
    write(directory, MINIMAL.replace("    host", "    security: starttls\n    host"))
    assert load(directory, {}).accounts[0].port == 143


def test_a_relative_database_lies_beside_the_file_wherever_triage_is_started(directory: Path) -> None:
    """Two working directories must not make two ledgers: the lease that keeps runs apart lives there."""
    assert load(directory, {}).ledger == f"sqlite:///{directory}/triage.db"
    write(directory, "ledger: sqlite:////var/lib/triage/triage.db\n" + MINIMAL)
    assert load(directory, {}).ledger == "sqlite:////var/lib/triage/triage.db"
    write(directory, "ledger: postgres://triage@db/triage\n" + MINIMAL)
    assert load(directory, {}).ledger == "postgresql+psycopg://triage@db/triage"


# ---------------------------------------------------------------- keys that look at each other


def chain(*entries: str, floor: float = 0.5) -> str:
    return f"decision:\n  floor: {floor}\n  chain:\n" + "".join(f"    - {{{e}}}\n" for e in entries) + MINIMAL


SERVER = "provider: systemone, base_url: 'https://api.example.com/', model: m"


def test_the_embedded_classifier_behind_another_provider_does_not_archive(directory: Path) -> None:
    first, second = load(write(directory, chain(SERVER, "provider: embedded")), {}).decision.chain
    assert (first.base_url, first.archive_floor, first.may_archive) == ("https://api.example.com", 0.5, True)
    assert (second.archive_floor, second.may_archive) == (0.7, False)


def test_a_fallback_archives_only_where_its_entry_says_so(directory: Path) -> None:
    write(directory, chain(SERVER, SERVER + ", may_archive: true", "provider: embedded, may_archive: true"))
    assert [p.may_archive for p in load(directory, {}).decision.chain] == [True, True, True]


def test_an_archive_never_needs_less_than_the_general_floor(directory: Path) -> None:
    write(directory, chain(SERVER + ", archive_floor: 0.6", "provider: embedded", floor=0.9))
    assert [p.archive_floor for p in load(directory, {}).decision.chain] == [0.9, 0.9]


def test_any_text_may_come_from_the_environment(directory: Path) -> None:
    text = MINIMAL.replace("imap.example.com", "{env: H}") + "    mode: {env: M}\n    schedule: {timezone: {env: Z}}\n"
    account = load(write(directory, text), {"H": "mail.example.org", "M": "label", "Z": "Asia/Tokyo"}).accounts[0]
    assert (account.host, account.mode, account.schedule.timezone.key) == ("mail.example.org", "label", "Asia/Tokyo")


def test_http_false_switches_it_off(directory: Path) -> None:
    assert load(write(directory, "http: false\n" + MINIMAL), {}).http is None


def test_no_spend_cap_is_said_with_null(directory: Path) -> None:
    write(directory, "decision: {spend_cap_usd_per_day: null}\n" + MINIMAL)
    assert load(directory, {}).decision.spend_cap_usd_per_day is None


def test_words_that_older_yaml_takes_for_truth_stay_words(directory: Path) -> None:
    (directory / "categories.yaml").write_text(
        "categories: [{id: no, name: Off, criteria: Yes}, {id: on, name: Y, criteria: 12:30}]\n", "utf-8"
    )
    cs = load(directory, {}).accounts[0].categories
    assert cs.ids == ("no", "on")
    assert [c.criteria for c in cs.categories] == ["Yes", "12:30"]


def test_accounts_share_keys_through_a_yaml_anchor(directory: Path) -> None:
    text = (
        MINIMAL.replace("  - name", "  - &first\n    name") + "  - {<<: *first, name: other, inbox: Shared, batch: 5}\n"
    )
    first, second = load(write(directory, text), {}).accounts
    assert (second.name, second.inbox, second.batch, second.host) == ("other", "Shared", 5, first.host)


def test_oauth_accounts_renew_their_token(directory: Path) -> None:
    oauth = "oauth: {provider: microsoft, client_id: c, refresh_token: {file: /run/refresh}, tenant: example.com}"
    write(directory, MINIMAL.replace("password: {env: PASSWORD}", f"auth: xoauth2\n    {oauth}"))
    credential = load(directory, {}).accounts[0].credential
    assert isinstance(credential, RefreshedToken)
    assert (credential.provider, credential.client_id, credential.tenant) == ("microsoft", "c", "example.com")
    assert "/run/refresh cannot be read" in check_secrets(load(directory, {}))[0]


# ---------------------------------------------------------------- warnings, secrets, rereading


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            chain("provider: systemone, base_url: 'http://10.0.0.7:11434', model: m"),
            ":4: decision.chain[0].base_url sends mail over the network unencrypted; use https:// where you can",
        ),
        (chain("provider: embedded", floor=0.9), "gives b a floor of 0.8, below decision.floor: no effect"),
        (MINIMAL + "    ca_file: ca.pem\n", "ca.pem, which is not there: no TLS connection can be made"),
    ],
)
def test_what_is_allowed_but_unwise_is_a_warning(directory: Path, text: str, said: str) -> None:
    (warning,) = load(write(directory, text), {}).warnings
    assert said in warning


def test_more_categories_than_some_servers_keep_is_a_warning(directory: Path) -> None:
    rows = "".join(f"  - {{id: c{i}, name: C, criteria: x}}\n" for i in range(21))
    (directory / "categories.yaml").write_text("categories:\n" + rows, "utf-8")
    assert "has 21 categories" in load(directory, {}).warnings[0]
    write(directory, MINIMAL + "    labels: gmail\n")
    assert load(directory, {}).warnings == ()


def test_missing_secrets_are_all_told_with_their_lines_when_they_are_checked(directory: Path) -> None:
    text = (
        "http: {token: {env: TOKEN}}\n"
        + MINIMAL
        + MINIMAL.partition("\n")[2]
        .replace("team", "b")
        .replace("Team@", "b@")
        .replace("{env: PASSWORD}", "{file: no-such-file}")
    )
    s = load(write(directory, text), {"TOKEN": ""})
    assert [p.removeprefix(f"{directory}/") for p in check_secrets(s)] == [
        "triage.yaml:1: http.token: the environment variable TOKEN is empty; set it before starting triage",
        "triage.yaml:6: accounts[0].password: the environment variable PASSWORD is not set; "
        "set it before starting triage",
        f"triage.yaml:11: accounts[1].password: the file {directory}/no-such-file cannot be read "
        "(No such file or directory)",
    ]


def test_secrets_are_fetched_only_when_asked_for(directory: Path) -> None:
    environ: dict[str, str] = {}
    s = load(directory, environ)
    environ["PASSWORD"] = "correct horse"
    credential = s.accounts[0].credential
    assert isinstance(credential, Secret)
    assert credential.get() == "correct horse"
    assert "correct horse" not in repr(s)


def test_a_broken_file_keeps_the_old_settings(directory: Path) -> None:
    old = load(directory, {})
    new, problems = reload(write(directory, MINIMAL.replace("since", "sinse")), old, {})
    assert new is old
    assert len(problems) == 2
    new, problems = reload(write(directory, MINIMAL + "    batch: 5\n"), old, {})
    assert (new.accounts[0].batch, problems) == (5, ())


def test_an_unchanged_file_gives_equal_settings(directory: Path) -> None:
    """So that a reread can tell which accounts changed."""
    assert load(directory, {}) == load(directory, {})


# ---------------------------------------------------------------- examples and arbitrary text


def test_the_repository_s_own_example_loads() -> None:
    s = load(REPOSITORY / "config", {})
    assert s.warnings == ()
    assert [len(a.categories.categories) for a in s.accounts] == [8]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.one_of(
        st.binary(max_size=300), st.text(alphabet="ab:-[]{}&*!|>'\"#%@ \n\t0,~.<", max_size=120).map(str.encode)
    )
)
def test_no_bytes_raise_anything_but_a_configuration_error(directory: Path, text: bytes) -> None:
    (directory / "triage.yaml").write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        load(directory, {})
    assert all(":" in p for p in caught.value.problems)


LINES = (
    MINIMAL + "decision:\n  floor: 0.5\n  chain:\n    - provider: embedded\nhttp: {listen: 127.0.0.1:8025}\n"
).splitlines()
ODD = st.sampled_from(
    [
        "",
        "null",
        "[]",
        "{}",
        "-1",
        "1e9",
        "yes",
        "2026-02-30",
        "{env: X}",
        "[[a]]",
        "'",
        "&a",
        "!x y",
        "{a: {b: c}}",
        "\u202e",
        "x" * 3000,
        "~nobody-here/x",
        "{file: ~nobody-here/x}",
    ]
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_mutation_of_a_sound_file_raises_anything_but_a_configuration_error(
    directory: Path, data: st.DataObject
) -> None:
    """Values replaced, lines dropped, repeated or moved: it loads, or it is told why not, at a line of the file."""
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 4))):
        i = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["value", "drop", "repeat", "swap", "indent"])):
            case "value":
                lines[i] = lines[i].partition(":")[0] + ": " + data.draw(ODD)
            case "drop" if len(lines) > 1:
                del lines[i]
            case "repeat":
                lines.insert(i, lines[i])
            case "swap":
                j = data.draw(st.integers(0, len(lines) - 1))
                lines[i], lines[j] = lines[j], lines[i]
            case _:
                lines[i] = "  " + lines[i]
    write(directory, "\n".join(lines))
    try:
        load(directory, {})
    except ConfigError as error:
        for told in error.problems:
            line = told.removeprefix(f"{directory}/triage.yaml:").partition(":")[0]
            assert 1 <= int(line) <= len(lines) + 1


@pytest.mark.parametrize(
    ("host", "stays"),
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("0.0.0.0", False),
     ("10.0.0.1", False), ("localhost.example.com", False), ("127.0.0.1.example.com", False), ("::", False)],
)  # fmt: skip
def test_loopback_is_this_machine_only(host: str, stays: bool) -> None:
    assert is_loopback(host) is stays
