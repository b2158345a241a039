"""The model card: written from what was measured, so that it cannot drift from the weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from triage.decide.embedded.weights import ANCHORS, unpack

from scripts.train.fit import Seen
from scripts.train.validate import ARCHIVE_FLOOR, FLOOR, Outcome

_LICENCES = (
    ("enron", "Enron e-mail corpus (FERC public release, UC Berkeley annotated subset)"),
    ("spamassassin", "SpamAssassin public corpus via stdlib-js/datasets-spam-assassin (ODC PDDL 1.0, contents CC0-1.0)"),
    ("synthetic, written, own-modern, own-corpus", "CC0-1.0, written for this project"),
    ("circuit-maintenance", "Apache-2.0 (networktocode/circuit-maintenance-parser)"),
    ("sisimai-bounces", "BSD-2-Clause (sisimai/set-of-emails)"),
    ("bitcoin-optech", "MIT (bitcoinops/bitcoinops.github.io)"),
    ("bipia", "MIT (microsoft/BIPIA)"),
    ("banorte-email-scraper", "MIT (ramomar/banorte-email-scraper)"),
    ("ha-mail-and-packages", "MIT (moralmunky/Home-Assistant-Mail-And-Packages)"),
    ("kde-kitinerary", "CC0-1.0 / LGPL-2.0-or-later test data (KDE/kitinerary)"),
    ("juriscraper-nef", "BSD-2-Clause (freelawproject/juriscraper)"),
    ("tpl-*, fx-*, nl-*", "product templates, reply fixtures and newsletters under MIT, Apache-2.0, BSD-3-Clause, CC0-1.0, CC BY 3.0 and 4.0"),
    ("injection strings", "bastioncorpus (MIT), spikee seeds (Apache-2.0), BIPIA (MIT), own (CC0-1.0)"),
)  # fmt: skip

_LIMITS = """\
## What it cannot do

- **It is modest.** On kinds of mail it has never seen it is right about as often as the second column says, not the first.
  Below the floor it says so, and the mail stays in the inbox under the fallback label.
- **Action required against conversation** is a judgement call even for people; most of its errors there are harmless (both stay).
- **Old training mail.** Much of the real mail is from 2000 to 2002 (Enron, SpamAssassin). Modern newsletters, promotions and
  phishing are mostly templates or written for this project. Labels had one reader, so label noise is unmeasured.
- **Languages.** English and Spanish best; German, French, Portuguese and Italian by shared cue phrases and few examples; Dutch
  and Czech barely; other scripts (Cyrillic, Greek, Chinese, Japanese, Arabic) only by how the mail is built.
- **Your own categories** are recognised by the words of their criteria and examples: topics ("court notices") work with
  examples, functions ("asks for a decision") do not. What is not recognised stays unclassified.
- **Prompt injection.** It looks for words that speak to a machine. New wordings pass, and injections inside quoted history or in
  attachments are not looked at. That is no hole in the defence: text can do no more than move its own label, and never out
  of the inbox once anything is suspected.
- **No world knowledge.** It does not know your suppliers, cannot check a sender or follow a link, and reads no images or attachments.
- **Calibration** holds for mail like the training mail. On a stranger's mailbox the same confidence is worth somewhat less; that is
  why archiving asks for more.

## What makes it better

About 25 corrections (move a label, or move mail back to the inbox), or a decision model: three lines of YAML, see `docs/models.md`.
"""


def write_card(seen: Sequence[Seen], packed: bytes, folds: Outcome, sources: Outcome) -> str:
    """The card as Markdown."""
    weights = unpack(packed)
    trained = [s.example for s in seen if s.example.train_ok]
    languages = Counter(e.lang for e in trained).most_common()
    categories = Counter(e.category for e in trained)
    return f"""# Model card: the embedded classifier

Written by `scripts/train_embedded.py --evaluate`; do not edit by hand.

Multinomial logistic regression over words, phrase families in several languages, headers, sender and structure, and a
second small one that looks for prompt injections in pairs of sentences. Plain Python at run time, no dependency, no network.
Weights `{weights.digest}`: {len(packed) / 1024:.0f} KB, {len(weights.rows):,} features, eight anchors: {", ".join(ANCHORS)}.

## Figures

Floor {FLOOR} on (max p - 1/n)/(1 - 1/n), archiving only at {ARCHIVE_FLOOR} and without veto. {folds.figures.mails} mails, {folds.figures.protected} of them
protected (they must stay in the inbox). *Known kinds*: grouped five-fold cross-validation, no thread, sender or template on both sides.
*Unknown kinds*: every source of mail held out as a whole. The mail marked as not usable for training is only ever judged.

| | known kinds | unknown kinds |
|---|---|---|
{_rows(folds, sources)}

Accuracy by language, known kinds: {_shares(folds.by_lang)}.

Accuracy by source:

| source | known kinds | unknown kinds |
|---|---|---|
{_source_rows(folds, sources)}

The cue phrases and injection words were written with knowledge of the development mail, and settings were compared on the same
splits; expect a few points less elsewhere.

## Training mail

{len(trained):,} mails: {", ".join(f"{c} {n}" for c, n in sorted(categories.items()))}. Languages: {", ".join(f"{c} {n}" for c, n in languages)}.
Sources under a licence that forbids it (phishing_pot, CC BY-NC 4.0) never train. CC BY sources: mark-up removed, text cut,
addresses masked.

| source | licence |
|---|---|
{chr(10).join(f"| {name} | {licence} |" for name, licence in _LICENCES)}

{_LIMITS}"""


def _rows(folds: Outcome, sources: Outcome) -> str:
    known, unknown = folds.figures, sources.figures
    lines = [
        ("accuracy", f"{known.accuracy:.3f}", f"{unknown.accuracy:.3f}"),
        ("macro-F1", f"{known.macro_f1:.3f}", f"{unknown.macro_f1:.3f}"),
        ("coverage at the floor", f"{known.coverage:.3f}", f"{unknown.coverage:.3f}"),
        ("accuracy of the covered", f"{known.accuracy_covered:.3f}", f"{unknown.accuracy_covered:.3f}"),
        ("noise that left the inbox", f"{known.noise_archived:.3f}", f"{unknown.noise_archived:.3f}"),
        ("**wrongly archived**", _wrong(folds), _wrong(sources)),
        ("calibration error (ECE)", f"{known.ece:.3f}", f"{unknown.ece:.3f}"),
        ("hijack recall", f"{folds.hijack_recall:.3f}", f"{sources.hijack_recall:.3f}"),
        ("hijack kept in the inbox", f"{folds.hijack_kept:.3f}", f"{sources.hijack_kept:.3f}"),
        ("hijack false alarms", f"{folds.hijack_false_alarms:.4f}", f"{sources.hijack_false_alarms:.4f}"),
        *((f"F1 {c}", f"{known.f1[c]:.2f}", f"{unknown.f1[c]:.2f}") for c in known.f1),
    ]
    return "\n".join(f"| {name} | {one} | {other} |" for name, one, other in lines)


def _wrong(outcome: Outcome) -> str:
    f = outcome.figures
    return f"{f.wrongly_archived_share:.4f} ({f.wrongly_archived} of {f.protected})"


def _source_rows(folds: Outcome, sources: Outcome) -> str:
    return "\n".join(f"| {s} | {folds.by_source[s]:.2f} | {sources.by_source[s]:.2f} |" for s in folds.by_source)


def _shares(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())
