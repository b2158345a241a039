"""The Mailbox port on IMAP4rev1 (RFC 3501, RFC 9051)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from triage.domain.errors import CommandRefused, MailboxChanged, MailboxError, MailboxLost, MailboxRefused
from triage.domain.mail import Head, MessageRef, PartBytes
from triage.mailbox import heads as reading
from triage.mailbox import labels as labelling
from triage.mailbox import moving
from triage.mailbox.answers import refusal
from triage.mailbox.connecting import connect
from triage.mailbox.discovery import Layout, discovery_commands, layout
from triage.mailbox.locating import Locator
from triage.mailbox.names import folder_of
from triage.mailbox.searching import hits_of, search_command
from triage.mailbox.selecting import Memory, Selector, Wanted
from triage.mailbox.session import Select, Session
from triage.mailbox.settings import ConnectionSettings
from triage.mailbox.stores import FolderStore, KeywordStore, Store, store_for
from triage.ports import Clock, Labelled, Located, MailboxFacts, Moved

_CRITERIA = re.compile(r"[\x20-\x7e]*")
_LITERAL = re.compile(r"\{\d+\+?\}")


class ImapMailbox:
    """One IMAP connection to one account's mailbox.

    After MailboxLost (connection lost, deadline, BYE, answers that cannot be read) call `open` again: it connects anew
    and raises MailboxChanged if the inbox was renumbered meanwhile; after `close` it starts afresh. All that reads, and
    `store_labels` and `remove_labels`, is safe to repeat after that. `archive` and `move_back` are where the server has
    MOVE; else see `moving.move`.

    Besides what each method names, any may raise MailboxLost, MailboxBusy (the server asks to come back later) or
    CommandRefused (NO or BAD to one command).
    """

    def __init__(self, settings: ConnectionSettings, *, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._session: Session | None = None
        self._layout = Layout("", "/", None, "", None)
        self._store: Store = KeywordStore()
        self._known_uidvalidity = 0
        self._memory = Memory()

    def open(self) -> MailboxFacts:
        """Connect, log in, find out where things are, SELECT the inbox read-write.

        While connected it only asks whether the connection still answers and what is new, and connects anew if not.
        Raises LoginRefused, MailboxRefused (certificate, no STARTTLS, no UIDVALIDITY), MailboxBusy, MailboxLost,
        CommandRefused (no such inbox), MailboxChanged.
        """
        if not self._still_answers():
            self._connect()
        return self._facts()

    def close(self) -> None:
        """Log out if the connection still answers; never raises. The next `open` starts afresh."""
        session, self._session = self._session, None
        self._known_uidvalidity = 0
        if session is None:
            return
        try:
            session.wire.logout()
        except MailboxError:
            session.wire.drop()

    def select_unlabelled(
        self,
        labels: Sequence[str],
        since: date | None,
        limit: int,
        *,
        before: date | None = None,
        newest_first: bool = False,
    ) -> tuple[int, ...]:
        """UIDs of at most `limit` undeleted inbox messages without any of `labels`; see `selecting` for how.

        Days are days of UTC; order is that of the UIDs, in which messages arrived. With a folder store every message
        that is still in the inbox is unlabelled.
        """
        wanted = Wanted(tuple(labels), since, before, newest_first)
        return tuple(item.uid for item in self._selector().select(wanted, limit))

    def oldest_unlabelled(self, labels: Sequence[str], since: date | None) -> datetime | None:
        """INTERNALDATE of the first message that `select_unlabelled` would return, None if there is none."""
        first = self._selector().select(Wanted(tuple(labels), since), 1)
        if not first or first[0].received is not None:
            return first[0].received if first else None
        uid = first[0].uid
        replies = self._open_session.on_inbox(*reading.fetch_commands([uid], "UID INTERNALDATE"))
        item = reading.answered(replies, "FETCH").get(uid)
        return item.received if item else None

    def fetch_heads(self, uids: Sequence[int]) -> Mapping[int, Head]:
        """Headers, structure, flags of inbox messages in one round trip. Messages that are gone are absent.

        A message whose BODYSTRUCTURE cannot be read has one opaque part: fetch it whole.
        """
        return reading.fetch_heads(self._open_session, uids)

    def fetch_texts(self, wanted: Mapping[int, Sequence[tuple[str, int]]]) -> Mapping[int, Mapping[str, PartBytes]]:
        """The leading octets of the named sections, in one round trip. What is missing is absent."""
        return reading.fetch_texts(self._open_session, wanted)

    def fetch_whole(self, uid: int, max_bytes: int) -> bytes | None:
        """The first `max_bytes` octets of one inbox message, None if it is gone."""
        return reading.fetch_whole(self._open_session, uid, max_bytes)

    def locate(self, message_ids: Sequence[str], hints: Mapping[str, MessageRef]) -> Mapping[str, tuple[Located, ...]]:
        """Earlier messages by exact Message-ID, written with angle brackets, in three round trips.

        Ids that are not printable ASCII are found by hint only.
        """
        return self._locator().by_message_id(message_ids, hints) if message_ids else {}

    def locate_threads(self, thread_ids: Sequence[str]) -> Mapping[str, tuple[Located, ...]]:
        """Messages of the server's own threads (X-GM-THRID, THREADID of RFC 8474); nothing where it has none."""
        return self._locator().by_thread_id(thread_ids) if thread_ids else {}

    def flags_of(self, uids: Sequence[int]) -> Mapping[int, Head]:
        """What inbox messages bear now, and their MODSEQ. Gone messages are absent."""
        return reading.fetch_flags(self._open_session, uids)

    def store_labels(self, plan: Mapping[int, str], heads: Mapping[int, Head], others: Sequence[str]) -> Labelled:
        """Put one label on each message; see `labelling`. With a folder store the message moves to its label's folder.

        Safe to repeat.
        """
        if isinstance(self._store, FolderStore):
            return self._store_in_folders(plan)
        return labelling.store_labels(self._open_session, self._store, plan, heads, others)

    def archive(self, uids: Sequence[int]) -> Moved:
        """Move inbox messages to the archive, which is created if it is missing; see `moving.move`."""
        if not uids:
            return Moved({}, frozenset(), {})
        if self._layout.archive is None:
            moving.create(self._open_session, self._layout.archive_to_create)
            self._layout = replace(self._layout, archive=self._layout.archive_to_create)
        return moving.move(self._open_session, self._settings.inbox, uids, self._archive)

    def search(self, mailbox: str, criteria: Sequence[str], *, window: int = 5000) -> tuple[int, ...]:
        """UIDs in any mailbox that match ASCII search keys, within its last `window` messages. Opened read-only.

        Raises CommandRefused for a mailbox that cannot be opened and for keys that are not one line of ASCII.
        """
        session = self._open_session
        keys = " ".join(criteria) or "ALL"
        if not _CRITERIA.fullmatch(keys) or _LITERAL.search(keys):
            raise CommandRefused("search keys must be printable ASCII without literals")
        at = session.use(mailbox, read_only=True)
        if not at.exists:
            return ()
        first = max(1, at.exists - window + 1)
        return tuple(
            sorted(hits_of(session.demand("SEARCH", search_command(session.capabilities, f"{first}:* {keys}"))))
        )

    def fetch_flags(self, mailbox: str, uids: Sequence[int]) -> Mapping[int, Head]:
        """Flags, INTERNALDATE and headers of messages in any mailbox, opened read-only. Gone messages are absent."""
        if not uids:
            return {}
        session = self._open_session
        session.use(mailbox, read_only=True)
        items = f"{reading.flag_items(session)} INTERNALDATE{reading.thread_item(session)} {reading.HEADERS}"
        found = reading.answered(session.run(*reading.fetch_commands(uids, items)), "FETCH")
        return {uid: reading.head_of(session, found[uid]) for uid in sorted(set(uids) & found.keys())}

    def remove_labels(self, mailbox: str, plan: Mapping[int, Sequence[str]]) -> frozenset[int]:
        """Take labels off; the UIDs that no longer bear them. With a folder store they return to the inbox."""
        if not plan:
            return frozenset()
        if isinstance(self._store, FolderStore):
            back = moving.move(self._open_session, mailbox, sorted(plan), self._settings.inbox)
            return frozenset(back.moved)
        return labelling.remove_labels(self._open_session, self._store, mailbox, plan)

    def move_back(self, uids: Sequence[int]) -> Moved:
        """Move messages of the archive back to the inbox; see `moving.move`."""
        if not uids:
            return Moved({}, frozenset(), {})
        return moving.move(self._open_session, self._archive, uids, self._settings.inbox)

    # ------------------------------------------------------------

    @property
    def _open_session(self) -> Session:
        if self._session is None:
            raise MailboxLost(f"{self._settings.host}: the mailbox is not open")
        return self._session

    @property
    def _archive(self) -> str:
        return self._layout.archive or self._layout.archive_to_create

    def _still_answers(self) -> bool:
        if self._session is None or self._session.wire.closed:
            return False
        try:
            return all(reply.ok for reply in self._session.on_inbox(b"NOOP"))
        except MailboxLost:
            return False

    def _connect(self) -> None:
        self._session = None
        settings = self._settings
        wire = connect(settings, self._clock)
        try:
            self._session = self._discover(Session(wire, settings.inbox))
        except MailboxChanged:
            self._known_uidvalidity = 0  # told once; whoever opens again knows
            raise
        except BaseException:
            wire.drop()
            raise

    def _discover(self, session: Session) -> Session:
        """Places and inbox, in one round trip. ENABLE comes first: MODSEQs are told only once they were asked for."""
        session.inbox_uidvalidity = self._known_uidvalidity
        enable = [b"ENABLE CONDSTORE"] if {"ENABLE", "CONDSTORE"} <= session.capabilities else []
        questions = discovery_commands(session, self._settings)
        replies = session.run(*enable, *questions, Select(self._settings.inbox, read_only=False))
        if not replies[-1].ok:
            raise refusal(replies[-1], f"to open {self._settings.inbox}")
        if self._settings.labels == "gmail" and "X-GM-EXT-1" not in session.capabilities:
            raise MailboxRefused(f"{session.wire.where}: the server has no Gmail labels; set labels to auto or keyword")
        self._layout = layout(session, self._settings, replies[len(enable) : -1])
        self._store = store_for(self._settings.labels, session.capabilities)
        self._known_uidvalidity = session.inbox_uidvalidity
        return session

    def _facts(self) -> MailboxFacts:
        session = self._open_session
        at = session.use_inbox()
        return MailboxFacts(
            inbox=at.mailbox,
            uidvalidity=at.uidvalidity,
            messages=at.exists,
            read_only=at.read_only,
            keeps_keywords=at.keeps_keywords,
            keywords=at.keywords,
            capabilities=session.capabilities,
            archive=self._layout.archive,
            archive_to_create=self._layout.archive_to_create,
            sent=self._layout.sent,
            highest_modseq=at.highest_modseq,
            label_store=self._store.name,
        )

    def _selector(self) -> Selector:
        return Selector(self._open_session, self._store, self._settings.select_window, self._memory)

    def _locator(self) -> Locator:
        others = [name for name in (self._layout.archive, self._layout.sent) if name]
        settings = self._settings
        return Locator(self._open_session, others, settings.thread_window, wide=settings.wide_thread_search)

    def _store_in_folders(self, plan: Mapping[int, str]) -> Labelled:
        """Each message moves to its label's folder; one that left the inbox meanwhile is gone."""
        stored: set[int] = set()
        gone: set[int] = set()
        refused: dict[int, str] = {}
        for label in dict.fromkeys(plan.values()):
            uids = [uid for uid, wanted in plan.items() if wanted == label]
            folder = folder_of(label, self._layout.prefix, self._layout.delimiter)
            result = moving.move(self._open_session, self._settings.inbox, uids, folder)
            stored.update(result.moved)
            gone.update(result.gone)
            refused.update(result.refused)
        return Labelled(frozenset(stored), {}, frozenset(gone), refused)
