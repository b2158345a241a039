"""Quoted history and signatures trimmed: what the sender wrote now stays, wherever it stands.

A reply that answers between the quotes or below them keeps its answers. A forwarded message is what its sender wants
to be read and stays. If nothing but old text is there, the old text stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WROTE = (
    r"(?:wrote|writes|schrieb|geschrieben|escribió|escribio|ha escrito|a écrit|écrit|ha scritto|escreveu"
    r"|napisał(?:\(a\))?"
    r"|schreef|skrev|kirjoitti|написал(?:\(а\))?|пишет|писал(?:\(а\))?|napsal\(a\)|napsal|írta|yazdı|写道|さんは書きました|작성)"
)
_ATTRIBUTION = re.compile(
    rf"(?:On|Am|Le|El|Il|Em|Op|Den|Dnia|W dniu|Dne|Pe|在|Em"
    rf"|Den)\b(?=.*\d).{{2,240}}{_WROTE}(?:\s.{{0,120}})?\s*[:：]\s*\Z"
    rf"|.{{0,200}}(?:<|@).{{0,200}}{_WROTE}\s*:\s*\Z"
    r"|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}.{0,200}(?:<|@).{0,200}:\s*\Z",
    re.I | re.S,
)
_UNDATED = re.compile(rf"(?:On|Am|Le|El|Il|Em|Op|Den)\b.{{2,100}}{_WROTE}\s*[:：]", re.I)
"""Good enough right above a quote."""
_SPLIT_ATTRIBUTION = re.compile(r"(?:On|Am|Le|El|Il|Em|Op|Den|Dnia|W|Dne|Pe)\s.{5}|\d{4}[-/.]\d|.{0,120}<", re.I)
_ORIGINAL = re.compile(
    r"[-_=*\s]{2,}\s*(?:Original Message|Original-Nachricht|Ursprüngliche Nachricht|Mensaje original|Message d'origine"
    r"|Message original|Messaggio originale|Mensagem original|Oorspronkelijk bericht|Urspr\. Nachricht"
    r"|Исходное сообщение"
    r"|Reply message|Original Appointment)\s*[-_=*\s]{0,}\Z",
    re.I,
)
_FORWARD = re.compile(
    r"\W*(?:-{2,}\s*)?(?:Forwarded (?:message|by|mail)|Begin forwarded message|Weitergeleitete Nachricht"
    r"|Anfang der weitergeleiteten|Mensaje reenviado|Inicio del mensaje reenviado|Message (?:transféré|transfere)"
    r"|Début du message|Messaggio inoltrato|Inizio messaggio|Mensagem (?:encaminhada|reencaminhada)"
    r"|Doorgestuurd bericht|Пересылаемое сообщение)\b.{0,120}\Z",
    re.I,
)
_FORWARD_SUBJECT = re.compile(r"\s*(?:\[[^\]]{1,40}\]\s*)?(?:fwd?|wg|rv|reenv|tr|enc|i|doorst|vs|pd|weiterl)\s*:", re.I)
_HEADER_FROM = re.compile(r"[*>\s]*(?:From|Von|De|Da|Van|Från|Fra|Od|От|发件人|差出人)\s*\*?\s*[:：]\s*\*?\s*\S", re.I)
_HEADER_SENT = re.compile(
    r"[*>\s]*(?:Sent|Gesendet|Enviad[oa](?: el| em)?|Envoyé|Inviato|Verzonden|Skickat|Sendt|Отправлено"
    r"|发送时间|送信日時)\s*\*?\s*[:：]",
    re.I,
)
_HEADER_TO = re.compile(
    r"[*>\s]*(?:To|An|Para|À|A|Aan|Till|Til|Do|Кому|收件人|宛先)\s*\*?\s*[:：]",
    re.I,
)
_HEADER_OTHER = re.compile(
    r"[*>\s]*(?:Date|Cc|Subject|Datum|Betreff|Fecha|Asunto|Objet|Data|Oggetto|Assunto|Onderwerp|Ämne|Emne|Temat"
    r"|Дата|Тема|主题|日期|件名)\s*\*?\s*[:：]",
    re.I,
)
_REPLY_SUBJECT = re.compile(
    r"\s*(?:\[[^\]]{1,40}\]\s*)?(?:re|aw|sv|antw|ref|rif|odp|vs|ynt|回复|答复|返信|ответ)\s?(?:\[\d+\])?\s*[:：]", re.I
)
_SEPARATOR = re.compile(r"\s*[_-]{10,}\s*\Z")
_SIGNATURE = re.compile(r"--[ \t]*\Z")
_LIST_FOOTER = re.compile(r"\s*(?:_{20,}|-{20,}|={20,}|~{20,})\s*\Z")
_LIST_WORDS = re.compile(
    r"mailing list\b\s*(?:[-:,<(]|$)|^\s*(?:to )?unsubscribe\b|listinfo|lista de correo\s*(?:[-:,<(]|$)|abmelden"
    r"|désabonner|mailman|you (?:are receiv|receiv)",
    re.I | re.M,
)
_SENT_FROM = re.compile(
    r"\s*(?:Sent from my (?:i(?:Phone|Pad|Pod)|Mac|Android|Galaxy|BlackBerry|Samsung|Pixel|Huawei|Xiaomi|Windows"
    r"|mobile|cell|phone|smart|tablet|Verizon|T-Mobile|\w+\Z)|Sent from (?:Mail|Outlook|Yahoo|Samsung|Proton|a )"
    r"|Sent with Proton|Get Outlook for|Von meinem \w+ gesendet"
    r"|Gesendet von|Enviado desde"
    r"|Envoyé de(?:puis)? mon|Inviato da|Enviado do meu|Verzonden vanaf|Отправлено (?:с|из)).{0,60}\Z",
    re.I,
)
_MAX_MARKER = 300
"""A longer line is no marker of anything, and is not worth a look."""
_MAX_SIGNATURE_LINES = 12
_MAX_SIGNATURE_CHARS = 900


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A text without its history; `quoted_lines` counts what was quoted, kept or not.

    `bare`: there is nothing but history or a signature, which therefore stayed.
    """

    text: str
    quoted_lines: int = 0
    bare: bool = False


def trim(text: str, subject: str = "") -> Trimmed:
    """Take quoted history and signatures out of a text with LF line ends. Never leaves nothing of something."""
    lines = text.split("\n")
    quoted = sum(1 for line in lines if _is_quote(line))
    kept = _cut_history(lines, subject)
    kept = _drop_quotes(kept)
    if not any(line.strip() for line in kept):
        kept = [_unquote(line) for line in lines]
        return Trimmed("\n".join(_cut_signature(kept) or kept), quoted, bare=True)
    signed = _cut_signature(kept)
    bare = not any(line.strip() for line in signed)
    if not bare:
        kept = signed
    last = len(kept) - 12
    unsigned = [line for n, line in enumerate(kept) if n < last or not _SENT_FROM.match(line[:_MAX_MARKER])]
    return Trimmed("\n".join(unsigned if any(map(str.strip, unsigned)) else kept), quoted, bare)


def _may_be_marker(line: str) -> bool:
    """A cheap look before the expensive ones."""
    return not line[0].isalnum() or ":" in line or "：" in line or _SPLIT_ATTRIBUTION.match(line) is not None


def _is_quote(line: str) -> bool:
    bare = line.lstrip()
    return bare.startswith(">") and not bare.startswith(">From ")


def _unquote(line: str) -> str:
    return re.sub(r"^\s*(?:>\s?)+", "", line) if _is_quote(line) else line


def _cut_history(lines: list[str], subject: str) -> list[str]:
    """Cut at a marker below which all is old, if something new stands above it."""
    written = False
    forwarded = _FORWARD_SUBJECT.match(subject) is not None
    reply = _REPLY_SUBJECT.match(subject) is not None
    for n, line in enumerate(lines):
        bare = line.lstrip()
        if not bare or _is_quote(line):
            continue
        if len(line) > _MAX_MARKER or not _may_be_marker(bare):
            written = True
            continue  # no marker looks like this
        if _FORWARD.match(line):
            return lines
        if written and not forwarded and (_ORIGINAL.match(line) or _is_header_block(lines, n, reply=reply)):
            above = lines[:n]
            while above and (not above[-1].strip() or _SEPARATOR.match(above[-1][:_MAX_MARKER])):
                above.pop()
            return above
        size = _attribution_size(lines, n) if written else 0
        if size and not forwarded and not any(_is_quote(x) for x in lines[n + size :]):
            return lines[:n]
        written = True
    return lines


def _is_header_block(lines: list[str], n: int, *, reply: bool) -> bool:
    """Outlook's way of quoting: From, then at least two more fields of a header within the next lines.

    A form has such fields too (From: Berlin, To: Paris): outside a reply, Sent or a sender's address must show that
    these are a mail's.
    """
    if not _HEADER_FROM.match(lines[n]):
        return False
    below = [line[:_MAX_MARKER] for line in lines[n + 1 : n + 8]]
    sent, to = any(map(_HEADER_SENT.match, below)), any(map(_HEADER_TO.match, below))
    if sent + to + sum(1 for line in below if _HEADER_OTHER.match(line)) < 2:
        return False
    return reply or sent or (to and "@" in lines[n])


def _attribution_size(lines: list[str], n: int) -> int:
    """How many lines the attribution that begins at line `n` has, 0 if none begins there."""
    joined = ""
    for size in range(1, 5):
        if n + size > len(lines) or not lines[n + size - 1].strip() or len(lines[n + size - 1]) > _MAX_MARKER:
            return 0
        joined = f"{joined} {lines[n + size - 1].strip()}".strip()
        if len(joined) > 500:
            return 0
        if joined.endswith((":", "：")) and _ATTRIBUTION.match(joined):
            return size
    return 0


def _drop_quotes(lines: list[str]) -> list[str]:
    """Leave out quoted lines, and the attribution right above a block of them. A quoted forward is unquoted."""
    kept: list[str] = []
    n = 0
    while n < len(lines):
        if not _is_quote(lines[n]):
            kept.append(lines[n])
            n += 1
            continue
        end = n
        while end < len(lines) and (_is_quote(lines[end]) or (not lines[end].strip() and _next_is_quote(lines, end))):
            end += 1
        block = [_unquote(line) for line in lines[n:end]]
        if _is_forward(block, kept):
            kept += block
        else:
            _drop_attribution(kept)
        n = end
    return kept


def _next_is_quote(lines: list[str], n: int) -> bool:
    return n + 1 < len(lines) and _is_quote(lines[n + 1])


def _is_forward(block: list[str], above: list[str]) -> bool:
    first = next((line for line in block if line.strip()), "")
    last = next((line for line in reversed(above[-3:]) if line.strip()), "")
    return bool(_FORWARD.match(first[:_MAX_MARKER]) or _FORWARD.match(last[:_MAX_MARKER]))


def _drop_attribution(kept: list[str]) -> None:
    """Take the lines `On ... wrote:` off the end, up to four of them, however they were broken."""
    end = len(kept)
    while end and not kept[end - 1].strip():
        end -= 1
    if not end or not kept[end - 1].rstrip().endswith((":", "：")):
        return
    for size in range(1, min(4, end) + 1):
        if not kept[end - size].strip() or len(kept[end - size]) > _MAX_MARKER:
            return
        joined = " ".join(line.strip() for line in kept[end - size : end])
        if _ATTRIBUTION.match(joined) or _UNDATED.fullmatch(joined):
            del kept[end - size :]
            return


def _cut_signature(lines: list[str]) -> list[str]:
    """Cut a mailing list's footer and a signature off the end; a long text below the mark is no signature."""
    for _ in range(2):  # a list of lists has two
        lines = _cut_footer(lines)
    below = chars = 0
    cut = len(lines)
    for n in range(len(lines) - 1, -1, -1):
        if below > _MAX_SIGNATURE_LINES or chars > _MAX_SIGNATURE_CHARS:
            break
        if lines[n].startswith("--") and _SIGNATURE.match(lines[n]):
            cut = n
        bare = lines[n].strip()
        below += bool(bare)
        chars += len(bare)
    return lines[:cut]


def _cut_footer(lines: list[str]) -> list[str]:
    for n in range(len(lines) - 1, max(-1, len(lines) - 40), -1):
        if lines[n][:1] in ("_", "-", "=", "~", " ") and _LIST_FOOTER.match(lines[n][:_MAX_MARKER]):
            below = [x for x in lines[n + 1 :] if x.strip()]
            if 0 < len(below) <= 8 and _LIST_WORDS.search("\n".join(below[:2])):
                return lines[:n]
    return lines
