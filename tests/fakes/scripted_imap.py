"""A small IMAP server on the loopback interface that can be told to misbehave.

    rule = Rule(when="^UID FETCH", before=["* 1 FETCH (FLAGS (\\\\Seen))"])
    with ScriptedImap([FakeBox("INBOX", [FakeMail(1)])], rules=[rule]) as server:
        ...                      # connect to 127.0.0.1:server.port with any user and password
        assert server.sent("UID STORE") == []

Without rules it behaves: it keeps flags, keywords, Gmail labels and MODSEQs, and knows only what `capabilities` say.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import re
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from fakes.imap_mailboxes import SYSTEM_FLAGS, FakeBox, FakeMail

FULL = ("IMAP4rev1", "UIDPLUS", "MOVE", "NAMESPACE", "LITERAL+", "CONDSTORE", "ENABLE", "ESEARCH", "SPECIAL-USE")
PLAIN = ("IMAP4rev1", "UIDPLUS", "MOVE", "NAMESPACE")
_LITERAL = re.compile(rb"\{(\d+)(\+?)\}\Z")


@dataclass
class Rule:
    """When a command (without its tag) matches, from its `nth` match on, at most `times` times.

    `before` and `after` are lines around the normal answer, `reply` replaces it ("{tag}" is filled in); `do` and
    `do_after` change the mailbox. `then`: close, reset (TCP RST), stall (no answer any more), drip (byte by byte), hold
    (the tagged line comes behind that of the next command, as Dovecot's may).
    """

    when: str
    nth: int = 1
    times: int = 1
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    reply: Sequence[str] | None = None
    do: Callable[[ScriptedImap], None] | None = None
    do_after: Callable[[ScriptedImap], None] | None = None
    then: str = ""
    seen: int = 0

    def applies(self, command: str) -> bool:
        if not re.search(self.when, command):
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


ALWAYS = 1_000_000


@dataclass
class ScriptedImap:
    """The server. `log` holds every command without its tag, `connections` how often somebody connected."""

    boxes: list[FakeBox]
    capabilities: Sequence[str] = FULL
    rules: Sequence[Rule] = ()
    prefix: str = ""
    delimiter: str = "/"
    greeting: str = "* OK [CAPABILITY {capabilities}] at your service"
    login_reply: str = ""
    tokens: Sequence[str] = ()  # the token each connection takes, the last one from then on
    keyword_limit: int | None = None
    keeps_stores: bool = True
    search_lines: int = 1
    refuses_searching_for: Sequence[str] = ()
    max_line: int = 8_000
    drip_s: float = 0.05
    log: list[str] = field(default_factory=list)
    connections: int = 0

    def __enter__(self) -> ScriptedImap:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        accepting = threading.Thread(target=self._accept)
        accepting.start()
        self._threads.append(accepting)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def box(self, name: str) -> FakeBox:
        return next(b for b in self.boxes if b.name == name)

    def inbox(self) -> FakeBox:
        return self.box("INBOX")

    def sent(self, pattern: str) -> list[str]:
        """The commands that match."""
        return [command for command in self.log if re.search(pattern, command)]

    def vanish(self, uid: int) -> None:
        """A message goes away without a word."""
        self.inbox().mails = [m for m in self.inbox().mails if m.uid != uid]

    def relabel(self, uid: int, *flags: str) -> None:
        """Somebody else sets a message's flags."""
        mail = self.inbox().by_uid(uid)
        assert mail is not None
        mail.flags = list(flags)
        self.inbox().touch(mail)

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            self._sockets.append(connection)
            thread = threading.Thread(target=_Session(self, connection, self.connections).run)
            self._threads.append(thread)
            thread.start()

    # ------------------------------------------------------------ used by sessions

    def rule_for(self, command: str) -> Rule | None:
        with self._lock:
            self.log.append(command)
            matching = [rule for rule in self.rules if rule.applies(command)]
        return matching[0] if matching else None

    def wait(self, seconds: float) -> bool:
        return self._stop.wait(seconds)


class _Gone(Exception):
    """The connection is over."""


class _Session:
    """One connection."""

    def __init__(self, server: ScriptedImap, connection: socket.socket, number: int) -> None:
        self._server, self._connection, self._number = server, connection, number
        self._reader = connection.makefile("rb")
        self._selected: FakeBox | None = None
        self._dripping = False
        self._tag = ""
        self._holding = False
        self._held: list[str] = []

    def run(self) -> None:
        try:
            capabilities = " ".join(self._server.capabilities)
            self._say(self._server.greeting.replace("{capabilities}", capabilities))
            while self._serve(self._command()):
                pass
        except (_Gone, OSError, ValueError):
            pass
        finally:
            self._reader.close()
            self._connection.close()

    def _command(self) -> str:
        line = self._reader.readline()
        if not line.endswith(b"\r\n"):
            raise _Gone
        line = line[:-2]
        while match := _LITERAL.search(line):
            if not match[2]:
                self._say("+ go on")
            data = self._reader.read(int(match[1]))
            line = line[: match.start()] + b'"' + data + b'"' + self._reader.readline()[:-2]
        return line.decode("utf-8", "replace")

    def _say(self, line: str) -> None:
        data = line.encode("utf-8", "surrogateescape") + b"\r\n"
        if not self._dripping:
            self._connection.sendall(data)
            return
        for n in range(len(data)):
            if self._server.wait(self._server.drip_s):
                raise _Gone
            self._connection.sendall(data[n : n + 1])

    def _serve(self, line: str) -> bool:
        tag, _, command = line.partition(" ")
        rule = self._server.rule_for(command)
        if rule is None:
            return self._answer(tag, command)
        if rule.do:
            rule.do(self._server)
        self._dripping = rule.then == "drip"
        self._holding = rule.then == "hold"
        for told in rule.before:
            self._say(told)
        if rule.then == "stall":
            self._server.wait(600)
            return False
        going_on = True
        if rule.reply is None and rule.then not in ("close", "reset"):
            going_on = self._answer(tag, command, rule.after)
        for told in rule.reply or ():
            self._say(told.replace("{tag}", tag))
        if rule.do_after:
            rule.do_after(self._server)
        if rule.then == "reset":
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return going_on and rule.then not in ("close", "reset")

    def _answer(self, tag: str, command: str, after: Sequence[str] = ()) -> bool:
        if len(command) > self._server.max_line:
            self._say(f"{tag} BAD command line too long")
            return True
        self._tag = tag
        words = command.split(" ")
        verb = words[1] if words[0] == "UID" else words[0]
        handler = getattr(self, f"_{verb.lower()}", None)
        status = handler(command.split(" ", 2 if words[0] == "UID" else 1)[-1]) if handler else "BAD what?"
        for told in after:
            self._say(told)
        if self._holding:
            self._holding = False
            self._held.append(f"{tag} {status}")
            return True
        for told in (f"{tag} {status}", *self._held):
            self._say(told)
        self._held = []
        return verb != "LOGOUT"

    # ------------------------------------------------------------ any state

    def _capability(self, _: str) -> str:
        self._say("* CAPABILITY " + " ".join(self._server.capabilities))
        return "OK done"

    def _noop(self, _: str) -> str:
        if self._selected is not None:
            self._say(f"* {len(self._selected.mails)} EXISTS")
        return "OK done"

    def _enable(self, what: str) -> str:
        self._say(f"* ENABLED {what}")
        return "OK done"

    def _logout(self, _: str) -> str:
        self._say("* BYE see you")
        return "OK done"

    def _login(self, _: str) -> str:
        return self._server.login_reply or "OK logged in"

    def _authenticate(self, arguments: str) -> str:
        words = arguments.split(" ")
        if len(words) == 1:
            self._say("+ ")
            words.append(self._command())
        told = base64.b64decode(words[1]).decode()
        tokens = self._server.tokens
        if tokens and f"auth=Bearer {tokens[min(self._number, len(tokens)) - 1]}\x01" not in told:
            self._say("+ " + base64.b64encode(b'{"status":"401"}').decode())
            self._command()
            return "NO [AUTHENTICATIONFAILED] invalid credentials"
        return self._server.login_reply or "OK logged in"

    # ------------------------------------------------------------ logged in

    def _namespace(self, _: str) -> str:
        self._say(f'* NAMESPACE (("{self._server.prefix}" "{self._server.delimiter}")) NIL NIL')
        return "OK done"

    def _list(self, arguments: str) -> str:
        special_only = arguments.startswith("(SPECIAL-USE)")
        pattern = _name(
            arguments.split(" ")[-1] if not arguments.endswith('"') else arguments[arguments.rindex(' "') :]
        )
        wanted = re.compile(re.escape(pattern).replace(r"\*", ".*").replace("%", "[^/.]*"))
        for box in self._server.boxes:
            if wanted.fullmatch(box.name) and (box.special or not special_only):
                self._say(f'* LIST (\\HasNoChildren {box.special}) "{self._server.delimiter}" "{box.name}"')
        return "OK done"

    def _status(self, arguments: str) -> str:
        box = self._find(arguments.rpartition(" (")[0])
        if box is None:
            return "NO [NONEXISTENT] no such mailbox"
        self._say(f'* STATUS "{box.name}" (MESSAGES {len(box.mails)})')
        return "OK done"

    def _create(self, arguments: str) -> str:
        name = _name(arguments)
        if self._find(arguments):
            return "NO [ALREADYEXISTS] it is there"
        if not name.startswith(self._server.prefix):
            return "NO outside of your namespace"
        self._server.boxes.append(FakeBox(name, uidvalidity=70 + len(self._server.boxes)))
        return "OK done"

    def _subscribe(self, _: str) -> str:
        return "OK done"

    def _select(self, arguments: str) -> str:
        return self._open(arguments, read_only=False)

    def _examine(self, arguments: str) -> str:
        return self._open(arguments, read_only=True)

    def _open(self, arguments: str, *, read_only: bool) -> str:
        self._selected = box = self._find(arguments)
        if box is None:
            return "NO [NONEXISTENT] no such mailbox"
        keywords = sorted({f for m in box.mails for f in m.flags if not f.startswith("\\")})
        self._say(box.flags_line or f"* FLAGS ({' '.join((*SYSTEM_FLAGS, *keywords))})")
        self._say(f"* OK [PERMANENTFLAGS ({' '.join(() if read_only else box.permanent)})] kept")
        self._say(f"* {len(box.mails)} EXISTS")
        self._say(f"* OK [UIDVALIDITY {box.uidvalidity}] ok")
        self._say(f"* OK [UIDNEXT {box.uidnext}] ok")
        if "CONDSTORE" in self._server.capabilities:
            self._say(f"* OK [HIGHESTMODSEQ {box.modseq}] ok")
        return "OK [READ-ONLY] open" if read_only or box.read_only else "OK [READ-WRITE] open"

    # ------------------------------------------------------------ selected

    @property
    def _box(self) -> FakeBox:
        if self._selected is None:
            raise _Gone
        return self._selected

    def _search(self, arguments: str) -> str:
        if any(word in arguments for word in self._server.refuses_searching_for):
            return "BAD cannot search for that"
        match = re.match(r"RETURN \((.*?)\) ", arguments)
        if match and "ESEARCH" not in self._server.capabilities:
            return "BAD what is RETURN?"
        hits = [m.uid for m in self._box.search(arguments[match.end() :] if match else arguments)]
        if match:
            self._say_esearch(match[1], hits)
            return "OK done"
        per_line = max(1, -(-len(hits) // self._server.search_lines))
        for start in range(0, max(1, len(hits)), per_line):
            self._say("* SEARCH" + "".join(f" {uid}" for uid in hits[start : start + per_line]))
        return "OK done"

    def _say_esearch(self, option: str, hits: list[int]) -> None:
        if option.startswith("PARTIAL"):
            first, last = map(int, option.split(" ")[1].split(":"))
            page = ",".join(map(str, hits[first - 1 : last])) or "NIL"
            self._say(f'* ESEARCH (TAG "{self._tag}") UID PARTIAL ({first}:{last} {page})')
        else:
            self._say(f'* ESEARCH (TAG "{self._tag}") UID' + (f" ALL {','.join(map(str, hits))}" if hits else ""))

    def _fetch(self, arguments: str) -> str:
        uid_set, _, items = arguments.partition(" ")
        for mail in self._box.in_set(uid_set, by_uid=True):
            number = self._box.mails.index(mail) + 1
            told = b" ".join(self._items(mail, items))
            self._say(f"* {number} FETCH ({told.decode('utf-8', 'surrogateescape')})")
        return "OK done"

    def _items(self, mail: FakeMail, items: str) -> list[bytes]:
        told = [f"UID {mail.uid}".encode()]
        if "FLAGS" in items:
            told.append(f"FLAGS ({' '.join(mail.flags)})".encode("utf-8", "surrogateescape"))
        if "MODSEQ" in items and "CONDSTORE" in self._server.capabilities:
            told.append(f"MODSEQ ({mail.modseq})".encode())
        if "X-GM-LABELS" in items:
            told.append(f"X-GM-LABELS ({' '.join(_quoted(x) for x in mail.labels)})".encode())
        for name in ("X-GM-THRID", "THREADID"):
            if name in items and mail.thread:
                told.append(f"{name} {mail.thread if name == 'X-GM-THRID' else f'({mail.thread})'}".encode())
        if "INTERNALDATE" in items:
            told.append(f'INTERNALDATE "{mail.received:%d-%b-%Y %H:%M:%S %z}"'.encode())
        if "RFC822.SIZE" in items:
            told.append(f"RFC822.SIZE {len(mail.octets())}".encode())
        if "BODYSTRUCTURE" in items and mail.structure != "":
            told.append(f"BODYSTRUCTURE {mail.bodystructure()}".encode())
        for match in re.finditer(r"BODY(\.PEEK)?\[([^\]]*)\](?:<0\.(\d+)>)?", items):
            if not match[1]:
                mail.flags.append("\\Seen")
            data = _section(mail, match[2])
            if match[3]:
                data = data[: int(match[3])]
            told.append(f"BODY[{match[2]}]{'<0>' if match[3] else ''} {{{len(data)}}}\r\n".encode() + data)
        return told

    def _store(self, arguments: str) -> str:
        match = re.fullmatch(
            r"(\S+) (?:\(UNCHANGEDSINCE (\d+)\) )?([+-]?)(FLAGS|X-GM-LABELS)(\.SILENT)? \((.*)\)", arguments
        )
        if not match:
            return "BAD store"
        uid_set, since, sign, item, silent, words = match.groups()
        if self._box.read_only:
            return "NO [NOPERM] read-only"
        values = [_name(w) for w in re.findall(r'"[^"]*"|\S+', words)]
        known = {f for m in self._box.mails for f in m.flags if not f.startswith("\\")}
        if self._server.keyword_limit is not None and len(known | set(values)) > self._server.keyword_limit:
            return "NO [LIMIT] too many user flags in mailbox"
        modified = []
        for mail in self._box.in_set(uid_set, by_uid=True):
            if since and mail.modseq > int(since):
                modified.append(mail.uid)
            elif self._server.keeps_stores:
                self._change(mail, sign, mail.flags if item == "FLAGS" else mail.labels, values)
                if not silent:
                    self._say(
                        f"* {self._box.mails.index(mail) + 1} FETCH (UID {mail.uid} FLAGS ({' '.join(mail.flags)}))"
                    )
        return f"OK [MODIFIED {','.join(map(str, modified))}] some" if modified else "OK done"

    def _change(self, mail: FakeMail, sign: str, values: list[str], words: list[str]) -> None:
        present = {v.casefold() for v in values}
        if sign == "+":
            values += [w for w in words if w.casefold() not in present]
        elif sign == "-":
            gone = {w.casefold() for w in words}
            values[:] = [v for v in values if v.casefold() not in gone]
        else:
            values[:] = words
        self._box.touch(mail)

    def _copy(self, arguments: str) -> str:
        uid_set, _, name = arguments.partition(" ")
        target = self._find(name)
        if target is None:
            return "NO [TRYCREATE] no such mailbox"
        return f"OK {self._copied(self._box.in_set(uid_set, by_uid=True), target)} copied"

    def _move(self, arguments: str) -> str:
        if "MOVE" not in self._server.capabilities:
            return "BAD what is MOVE?"
        uid_set, _, name = arguments.partition(" ")
        target = self._find(name)
        if target is None:
            return "NO [TRYCREATE] no such mailbox"
        mails = self._box.in_set(uid_set, by_uid=True)
        # The work is done before a word is said of it: who is cut off in mid-answer finds the messages moved.
        told = self._copied(mails, target)
        gone = self._taken_out(mails)
        if told:
            self._say(f"* OK {told} moved")
        for number in gone:
            self._say(f"* {number} EXPUNGE")
        return "OK done"

    def _copied(self, mails: list[FakeMail], target: FakeBox) -> str:
        fresh = count(target.uidnext)
        copies = [copy.deepcopy(m) for m in mails]
        for mail in copies:
            mail.uid = next(fresh)
        target.mails += copies
        if "UIDPLUS" not in self._server.capabilities or not mails:
            return ""
        sources, targets = (",".join(str(m.uid) for m in some) for some in (mails, copies))
        return f"[COPYUID {target.uidvalidity} {sources} {targets}]"

    def _expunge(self, arguments: str) -> str:
        if "UIDPLUS" not in self._server.capabilities:
            return "BAD what is UID EXPUNGE?"
        self._remove([m for m in self._box.in_set(arguments, by_uid=True) if m.bears("\\Deleted")])
        return "OK done"

    def _remove(self, mails: list[FakeMail]) -> None:
        for number in self._taken_out(mails):
            self._say(f"* {number} EXPUNGE")

    def _taken_out(self, mails: list[FakeMail]) -> list[int]:
        """Take messages out of the open mailbox; their sequence numbers, each as it was when its turn came."""
        numbers = []
        for mail in mails:
            numbers.append(self._box.mails.index(mail) + 1)
            self._box.mails.remove(mail)
        return numbers

    def _find(self, argument: str) -> FakeBox | None:
        name = _name(argument)
        return next((b for b in self._server.boxes if b.name == name), None)


def _name(argument: str) -> str:
    argument = argument.strip()
    return re.sub(r"\\(.)", r"\1", argument[1:-1]) if argument.startswith('"') else argument


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _section(mail: FakeMail, name: str) -> bytes:
    head, _, body = mail.octets().partition(b"\r\n\r\n")
    if name.startswith("HEADER.FIELDS"):
        wanted = {w.casefold() for w in name[name.index("(") + 1 : -1].split()}
        lines = re.split(rb"\r\n(?![ \t])", head)
        kept = [x for x in lines if x.split(b":")[0].decode("latin-1").casefold() in wanted]
        return b"".join(x + b"\r\n" for x in kept) + b"\r\n"
    return mail.octets() if not name else body
