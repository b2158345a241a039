"""What threading reads of a mail's header block."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from triage.domain.mail import THREAD_FIELDS
from triage.threads.addresses import read_authors
from triage.threads.fields import FOLD, read_fields
from triage.threads.message_ids import order_parents, read_ids
from triage.threads.subjects import clean_subject, is_forward

_LIST_FIELDS = ("list-id", "list-unsubscribe", "list-post")
_WANTED = frozenset(map(str.lower, THREAD_FIELDS))
_BULK = frozenset(("bulk", "list", "junk", "auto_reply"))
_MACHINE = re.compile(r"(?:no|not|do-?not)[-_.]?reply|mailer-daemon|bounces?|notifications?|postmaster")
_LIST_ID = re.compile(r"<([^<>]*)>")
_MAX_LIST_ID_CHARS = 255


@dataclass(frozen=True, slots=True)
class ThreadHeaders:
    """One mail as threading sees it. All values are the mail's own claims: nothing here is proved.

    `message_id` is exact and in angle brackets, "" if there is none. `parents` are the ids it says it descends from,
    nearest first; `answers` says that In-Reply-To named one. `authors` are all addresses of From, normalised.
    `list_id` is the bare List-Id. `subject` is clean (see subjects.clean_subject) and kept out of repr.
    """

    message_id: str = ""
    parents: tuple[str, ...] = ()
    answers: bool = False
    authors: tuple[str, ...] = ()
    list_id: str = ""
    automated: bool = False
    forwarded: bool = False
    subject: str = field(default="", repr=False)

    @property
    def sender(self) -> str:
        """The one author; "" if there is none, or more than one: then nobody can be said to have written it."""
        return self.authors[0] if len(self.authors) == 1 else ""


def read_thread_headers(headers: bytes) -> ThreadHeaders:
    """Read the header block of any mail: bounded in time and size, never raises."""
    fields = read_fields(headers, _WANTED)
    message_id = next((i for value in fields.get("message-id", ()) for i in read_ids(value)), "")
    in_reply_to = [i for value in fields.get("in-reply-to", ()) for i in read_ids(value)]
    references = [i for value in fields.get("references", ()) for i in read_ids(value)]
    authors = read_authors(fields.get("from", ()))
    subject = clean_subject(_first(fields, "subject"))
    return ThreadHeaders(
        message_id=message_id,
        parents=order_parents(in_reply_to, references, message_id),
        answers=any(i != message_id for i in in_reply_to),
        authors=authors,
        list_id=_list_id(_first(fields, "list-id")),
        automated=_is_automated(fields, authors),
        forwarded=is_forward(subject),
        subject=subject,
    )


def _first(fields: Mapping[str, tuple[str, ...]], name: str) -> str:
    return next(iter(fields.get(name, ())), "")


def _list_id(value: str) -> str:
    """The identifier of a List-Id (RFC 2919): what stands in brackets, else the only word."""
    bracketed = _LIST_ID.findall(value)
    words = value.split()
    inner = bracketed[-1] if bracketed else (words[0] if len(words) == 1 else "")
    return "".join(inner.replace(FOLD, " ").split()).lower()[:_MAX_LIST_ID_CHARS]


def _is_automated(fields: Mapping[str, tuple[str, ...]], authors: tuple[str, ...]) -> bool:
    """Auto-Submitted (RFC 3834), Precedence, any list field (RFC 2369, 2919), or a sender nobody can answer."""
    submitted = _first(fields, "auto-submitted").partition(";")[0].strip().lower()
    if submitted not in ("", "no") or _first(fields, "precedence").strip().lower() in _BULK:
        return True
    if any(name in fields for name in _LIST_FIELDS):
        return True
    return len(authors) == 1 and _MACHINE.match(authors[0].partition("@")[0]) is not None
