"""Broken triage.yaml, one a case, and what the operator is told."""

from __future__ import annotations

from broken import SETTINGS, Broken

CASES_OF_SETTINGS = [
    Broken(
        "misspelt key",
        "    port: 993",
        "    portt: 993",
        ("14: accounts[0].portt is not a key here; did you mean port?",),
    ),
    Broken(
        "key of another block",
        "log:",
        "floor: 0.4\nlog:",
        ("2: floor is not a key here; did you mean decision.floor?",),
    ),
    Broken(
        "key of nobody",
        "log: {level: info}",
        "log: {level: info, zzz: 1}",
        ("2: log.zzz is not a key here; known are level, format",),
    ),
    Broken(
        "key twice",
        "    batch: 20",
        "    batch: 20\n    batch: 10",
        ("20: accounts[0].batch is written twice (first on line 19); keep one",),
    ),
    Broken(
        "every problem at once",
        "    port: 993\n    security: tls",
        '    port: "993"\n    security: plain',
        (
            "14: accounts[0].port must be a whole number, not text; remove the quotes",
            "15: accounts[0].security may be plain on loopback only: the password would cross the network; "
            "use tls or starttls",
        ),
    ),
    Broken(
        "port out of range",
        "port: 993",
        "port: 99999",
        ("14: accounts[0].port must be at most 65535, not the number 99999",),
    ),
    Broken(
        "batch over the cap",
        "batch: 20",
        "batch: 21",
        ("19: accounts[0].batch must be at most 20, not the number 21",),
    ),
    Broken("empty batch", "batch: 20", "batch: 0", ("19: accounts[0].batch must be at least 1, not the number 0",)),
    Broken(
        "unknown mode",
        "mode: act",
        "mode: acts",
        ("18: accounts[0].mode must be one of preview, label, act, not acts; did you mean act?",),
    ),
    Broken(
        "floor out of range", "floor: 0.5", "floor: 1.5", ("5: decision.floor must be at most 1, not the number 1.5",)
    ),
    Broken(
        "floor as text",
        "floor: 0.5",
        'floor: "0.5"',
        ("5: decision.floor must be a number, not text; remove the quotes",),
    ),
    Broken("floor not a number", "floor: 0.5", "floor: .nan", ("5: decision.floor must be a number, not .nan",)),
    Broken(
        "unknown time zone",
        "Europe/Madrid",
        "Europe/Madird",
        (
            "21: accounts[0].schedule.timezone is not a time zone this machine knows (did you mean Europe/Madrid?); "
            "write one like Europe/Madrid or UTC",
        ),
    ),
    Broken(
        "time zone that is a path",
        "Europe/Madrid",
        "../../etc/passwd",
        (
            "21: accounts[0].schedule.timezone is not a time zone this machine knows; "
            "write one like Europe/Madrid or UTC",
        ),
    ),
    Broken(
        "bad cron",
        "*/5 * * * *",
        "*/5 * * *",
        (
            "21: accounts[0].schedule.cron needs five fields (minute hour day month weekday), not 4; "
            'every five minutes is "*/5 * * * *"',
        ),
    ),
    Broken(
        "cron out of range",
        "*/5 * * * *",
        "61 * * * *",
        ("21: accounts[0].schedule.cron has 61 as minute; it goes from 0 to 59",),
    ),
    Broken("no such day", "2026-11-23", "2026-11-31", ("20: accounts[0].since is not a day of the calendar",)),
    Broken(
        "day with a time",
        "2026-11-23",
        "2026-11-23 10:00",
        ("20: accounts[0].since must be a day such as 2026-11-23, without a time",),
    ),
    Broken(
        "no day",
        "    since: 2026-11-23\n",
        "",
        (
            "12: accounts[0].since is missing: mail that arrived from this day on is sorted; "
            "write a day such as 2026-11-23",
        ),
    ),
    Broken(
        "password in the file",
        "password: {env: PASSWORD}",
        "password: hunter2",
        (
            "17: accounts[0].password must not be written here; say where it is kept: "
            "{env: NAME}, {file: PATH}, {command: LINE} or {keyring: SERVICE}",
        ),
    ),
    Broken(
        "password in braces",
        "password: {env: PASSWORD}",
        "password: {hunter2}",
        (
            "17: accounts[0].password must be exactly one of "
            "{env: NAME}, {file: PATH}, {command: LINE} or {keyring: SERVICE}",
        ),
    ),
    Broken(
        "no password",
        "    password: {env: PASSWORD}\n",
        "",
        ("12: accounts[0] has no password: add password: {env: NAME}, {file: PATH}, ...",),
    ),
    Broken(
        "unclosed quote in a command",
        "password: {env: PASSWORD}",
        """password: {command: "pass 'x"}""",
        ("17: accounts[0].password must be a command line after command: a quote is not closed",),
    ),
    Broken(
        "password where a token is used",
        "    mode: act",
        "    auth: xoauth2\n    mode: act",
        (
            "12: accounts[0] has no token: add token: {command: LINE} or oauth: {provider: ...}",
            "17: accounts[0].password is not used with auth: xoauth2; give token or oauth instead",
        ),
    ),
    Broken(
        "variable that is not set",
        "host: imap.example.com",
        "host: {env: MAIL_HOST}",
        (
            "13: accounts[0].host is to come from the environment variable MAIL_HOST, which is not set; "
            "set it or write the text",
        ),
    ),
    Broken(
        "host as a URL",
        "host: imap.example.com",
        "host: imaps://imap.example.com",
        ("13: accounts[0].host must be the bare name of the server, without what stands before ://",),
    ),
    Broken(
        "dashboard open to the network",
        "127.0.0.1:8025",
        "0.0.0.0:8025",
        ("3: http.listen is reachable from other machines: add http.token, or listen on 127.0.0.1",),
    ),
    Broken(
        "http that is neither a block nor false",
        "http: {listen: 127.0.0.1:8025}",
        "http: true",
        ("3: http must be a block of keys, or false to switch it off",),
    ),
    Broken(
        "duration without a unit",
        "log: {level: info}",
        "retention: {records: 90}",
        ("2: retention.records needs a number with a unit: 10s, 5m, 1h or 90d",),
    ),
    Broken(
        "duration out of range",
        "  floor: 0.5",
        "  deadline: 0s",
        ("5: decision.deadline must be from 1s to 10m",),
    ),
    Broken(
        "unknown provider",
        "provider: systemone",
        "provider: systemon",
        (
            "7: decision.chain[0].provider must be one of embedded, systemone, openai-decisions, openai-chat, "
            "not systemon; did you mean systemone?",
        ),
    ),
    Broken(
        "key of another provider",
        "provider: systemone",
        "provider: embedded",
        (
            "8: decision.chain[0].base_url is not a key here; did you mean decision.chain[].base_url?",
            "9: decision.chain[0].model is not a key here; did you mean decision.chain[].model?",
            "10: decision.chain[0].api_key is not a key here; did you mean decision.chain[].api_key?",
        ),
    ),
    Broken(
        "no provider",
        "    - provider: systemone\n      base_url",
        "    - base_url",
        ("7: decision.chain[0] has no provider: add a line such as provider: embedded",),
    ),
    Broken(
        "empty chain",
        SETTINGS[SETTINGS.index("  chain:") : SETTINGS.index("accounts:")],
        "  chain: []\n",
        ("6: decision.chain must hold at least 1",),
    ),
    Broken(
        "key in the clear",
        "https://api.example.com",
        "http://api.example.com",
        ("10: decision.chain[0].api_key would cross the network unencrypted: base_url must begin with https://",),
    ),
    Broken(
        "key inside the URL",
        "https://api.example.com",
        "https://me:hunter2@api.example.com",
        ("8: decision.chain[0].base_url must hold only scheme, host, port and path; a key belongs in api_key",),
    ),
    Broken(
        "unknown ledger",
        "sqlite:///triage.db",
        "mysql://me:hunter2@host/db",
        ("1: ledger must be sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE",),
    ),
    Broken(
        "no accounts", SETTINGS[SETTINGS.index("accounts:") :], "accounts: []\n", ("11: accounts must hold at least 1",)
    ),
    Broken(
        "accounts left empty",
        SETTINGS[SETTINGS.index("accounts:") :],
        "accounts:\n",
        ("11: accounts must be a list (lines that begin with -), but is empty",),
    ),
    Broken(
        "account that is a word",
        SETTINGS[SETTINGS.index("accounts:") :],
        "accounts: [team]\n",
        ("11: accounts[0] must be a block of keys, not team",),
    ),
    Broken(
        "same mailbox under one name",
        SETTINGS[SETTINGS.index("  - name") :],
        SETTINGS[SETTINGS.index("  - name") :] * 2,
        (
            "22: accounts[1] sorts the same mailbox as accounts[0]; keep one, or give them different inboxes",
            "22: accounts[1].name is the name of accounts[0] already; names must differ",
        ),
    ),
    Broken(
        "name with a blank",
        "name: team",
        "name: the team",
        ("12: accounts[0].name holds characters that cannot be used here (letters, digits, . _ - can)",),
    ),
    Broken(
        "number for a name",
        "name: team",
        "name: 7",
        ("12: accounts[0].name must be text, not the number 7; put it in quotes",),
    ),
    Broken(
        "missing categories file",
        "    batch: 20",
        "    categories: other.yaml",
        ("19: accounts[0].categories names {dir}/other.yaml, which is not there; `triage init` writes one",),
    ),
    Broken("empty file", "", "", ("1: is empty; `triage init` writes a file to start from",)),
    Broken("only comments", "", "# nothing\n", ("1: is empty; `triage init` writes a file to start from",)),
    Broken("a list", "", "- team\n", ("1: must be a block of keys (`key: value` lines)",)),
    Broken("no keys", "", "{}\n", ("1: accounts is missing: at least one account to sort",)),
    Broken("tab", "    port", "\tport", ("14: is indented with a tab; YAML wants spaces",)),
    Broken(
        "unclosed bracket",
        "{level: info}",
        "{level: info",
        ("3: is not valid YAML: expected ',' or '}', but got ':'; check indentation, colons and quotes here",),
    ),
    Broken(
        "unquoted *",
        "{env: PASSWORD}",
        "*hunter2",
        ("17: uses an alias that is defined nowhere; text that begins with * must be in quotes",),
    ),
    Broken(
        "unknown tag",
        "{env: PASSWORD}",
        "!hunter2 x",
        (
            "12: accounts[0] has no password: add password: {env: NAME}, {file: PATH}, ...",
            "17: accounts[0].password has a YAML tag (!...); tags mean nothing here, remove it",
        ),
    ),
    Broken(
        "two documents", "accounts:", "---\naccounts:", ("11: holds a second document (---); one file is one document",)
    ),
    Broken("control character", "team@", "te\x07am@", ("16: holds a control character; remove it",)),
    Broken(
        "too deep",
        "",
        "a: " + "[" * 40,
        ("1: is not valid YAML: nested more than 20 deep; check indentation, colons and quotes here",),
    ),
    Broken(
        "alias of itself",
        "accounts:",
        "accounts: &a [*a]\nx:",
        (
            "11: accounts[0] contains itself through an alias",
            "11: accounts[0] must be a block of keys, but is empty",
            "12: x is not a key here; known are ledger, log, http, retention, record_subjects, corrections, decision, "
            "accounts",
        ),
    ),
    Broken(
        "token where a password is used",
        "    mode: act",
        "    token: {env: TOKEN}\n    mode: act",
        ("18: accounts[0].token needs auth: xoauth2 or oauthbearer",),
    ),
    Broken(
        "token and oauth",
        "    password: {env: PASSWORD}",
        "    auth: xoauth2\n    token: {env: T}\n    oauth: {provider: google, client_id: c, refresh_token: {env: R}}",
        ("19: accounts[0].oauth cannot stand beside token; keep one of them",),
    ),
    Broken(
        "oauth of an unknown provider",
        "    password: {env: PASSWORD}",
        "    auth: xoauth2\n    oauth: {provider: gogle, refresh_token: hunter2}",
        (
            "18: accounts[0].oauth.client_id is missing: the id of the application registered there",
            "18: accounts[0].oauth.provider must be one of google, microsoft, not gogle; did you mean google?",
            "18: accounts[0].oauth.refresh_token must not be written here; say where it is kept: "
            "{env: NAME}, {file: PATH}, {command: LINE} or {keyring: SERVICE}",
        ),
    ),
    Broken(
        "variable with an impossible name",
        "{env: PASSWORD}",
        "{env: hunter2!}",
        ("17: accounts[0].password must name an environment variable after env: (letters, digits, _)",),
    ),
    Broken(
        "source left empty",
        "{env: PASSWORD}",
        "{keyring: }",
        ("17: accounts[0].password must be text after keyring:",),
    ),
    Broken(
        "archive that is the inbox",
        "    batch: 20",
        "    archive: inbox",
        ("19: accounts[0].archive must be another mailbox than inbox: archived mail would stay where it is",),
    ),
    Broken(
        "owner without a domain",
        "    batch: 20",
        "    addresses: [team]",
        ("19: accounts[0].addresses must hold addresses such as team@example.com",),
    ),
    Broken(
        "host with its port",
        "imap.example.com",
        "imap.example.com:993",
        (
            "13: accounts[0].host must be the name or address of a server, such as imap.example.com "
            "(the port has its own key)",
        ),
    ),
    Broken(
        "listening without a port",
        "127.0.0.1:8025",
        "127.0.0.1",
        ("3: http.listen must be an address and a port, such as 127.0.0.1:8025",),
    ),
    Broken(
        "base_url without a scheme",
        "https://api.example.com",
        "api.example.com",
        ("8: decision.chain[0].base_url must be a URL such as https://api.example.com",),
    ),
    Broken(
        "text over two lines",
        "team@example.com",
        '"team@\\nexample.com"',
        ("16: accounts[0].username must be a single line without control characters",),
    ),
    Broken(
        "truth in quotes",
        "log: {level: info}",
        'record_subjects: "true"',
        ("2: record_subjects must be true or false, not text; remove the quotes",),
    ),
    Broken(
        "yes for true",
        "log: {level: info}",
        "record_subjects: yes",
        ("2: record_subjects must be true or false, not yes",),
    ),
]
