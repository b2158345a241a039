"""Two sound files, and what a broken one is."""

from __future__ import annotations

from dataclasses import dataclass

SETTINGS = """\
ledger: sqlite:///triage.db
log: {level: info}
http: {listen: 127.0.0.1:8025}
decision:
  floor: 0.5
  chain:
    - provider: systemone
      base_url: https://api.example.com
      model: m-1
      api_key: {env: KEY}
accounts:
  - name: team
    host: imap.example.com
    port: 993
    security: tls
    username: team@example.com
    password: {env: PASSWORD}
    mode: act
    batch: 20
    since: 2026-11-23
    schedule: {cron: "*/5 * * * *", timezone: Europe/Madrid}
"""
CATEGORIES = """\
parent: Triage
fallback: {id: unclassified, name: Unclassified}
categories:
  - id: action-required
    name: Action required
    criteria: Asks for something.
    action: keep
  - id: receipt
    name: Receipt
    criteria: Confirms a payment.
    action: archive
"""


@dataclass(frozen=True)
class Broken:
    """`old` becomes `new` in one of the two files (the whole file where `old` is empty); `told` is every problem."""

    name: str
    old: str
    new: str
    told: tuple[str, ...]
    file: str = "triage.yaml"
