"""The tuning report as one HTML file: no script, no request, light and dark, readable on a phone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from triage.domain.tool import Rates
from triage.report import svg
from triage.report.text import minute, money
from triage.report.tool_rates import tool_words
from triage.report.tuning import EXPECTED_UNSURE, Calibration, Report

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--calm:#5c6670;--ground:#fff;--line:#d5dae0;--bar:#a9c3e6;--bar2:#2f6cb5;
--mark:#b3541e}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--calm:#9aa4af;--ground:#14171b;--line:#353c45;--bar:#33506f;
--bar2:#6fa8e8;--mark:#e39a6b}}
*{box-sizing:border-box}body{margin:0 auto;max-width:60rem;padding:1.5rem 1rem 4rem;background:var(--ground);
color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0 0 .25rem}h2{font-size:1.15rem;margin:2.2rem 0 .5rem}h3{font-size:1rem;margin:1rem 0 .25rem}
p{margin:.3rem 0}.calm{color:var(--calm)}ul{padding-left:1.2rem;margin:.3rem 0}
.figures{display:flex;flex-wrap:wrap;gap:.5rem 2rem;margin:1rem 0;padding:0}.figures div{min-width:8rem}
.figures dt{color:var(--calm);font-size:.85rem}.figures dd{margin:0;font-size:1.35rem;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left}td.words{text-align:left}th{font-weight:600}
svg.plot{max-width:100%;height:auto;display:block}svg .bar{fill:var(--bar)}svg .bar2{fill:var(--bar2)}
svg .axis{stroke:var(--line)}svg .grid{fill:none;stroke:var(--line)}svg .mark{stroke:var(--mark);stroke-dasharray:4 3}
svg .label{fill:var(--calm);font:12px system-ui,sans-serif}.small{display:flex;flex-wrap:wrap;gap:1rem 2rem}
"""


def report_html(reports: Sequence[Report], floors: Sequence[float] = ()) -> str:
    """The whole document. `floors` are drawn into the histograms."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>triage: tuning report</title><style>{STYLE}</style></head><body>"
        + "".join(_account(report, floors) for report in reports)
        + "</body></html>\n"
    )


def _account(report: Report, floors: Sequence[float]) -> str:
    return "".join(
        (
            f"<header><h1>{escape(report.account)}</h1>",
            f'<p class="calm">{minute(report.since)} to {minute(report.until)} UTC</p></header>',
            _figures(report),
            _advice(report),
            _volume(report),
            _categories(report, floors),
            _pairs(report),
            _corrections(report),
            _calibration(report.calibration),
            _answers(report),
            _cost(report),
            _tool(report.tool),
        )
    )


def _figures(report: Report) -> str:
    shown = (
        ("Decisions", f"{report.decisions:,}"),
        ("Archived", f"{report.archived:,}"),
        ("Under the floor", f"{report.below_share:.1%}"),
        ("Inherited", f"{report.inherited_share:.1%}"),
        ("Recovered", f"{report.recovered:,}"),
        ("By a fallback", f"{report.fallback_share:.1%}"),
        ("Corrections", f"{report.corrections.count:,}"),
        ("Per 1,000 mails", money(report.cost.per_1000)),
    )
    return '<dl class="figures">' + "".join(f"<div><dt>{n}</dt><dd>{v}</dd></div>" for n, v in shown) + "</dl>"


def _advice(report: Report) -> str:
    if not report.advice:
        return "<h2>What to do</h2><p>Nothing stands out.</p>"
    return "<h2>What to do</h2><ul>" + "".join(f"<li>{escape(each)}</li>" for each in report.advice) + "</ul>"


def _volume(report: Report) -> str:
    days = [(day.isoformat(), float(n), float(archived)) for day, (n, archived, _) in report.days.items()]
    if not days:
        return ""
    busiest = max(days, key=lambda d: d[1])
    words = f"{len(days)} days, {report.decisions:,} decisions; most on {busiest[0]}: {busiest[1]:,.0f}."
    return f"<h2>Volume</h2>{svg.columns(days, 'Decisions a day, archived ones darker', words)}{_calm(words)}"


def _categories(report: Report, floors: Sequence[float]) -> str:
    head = ("Label", "Mails", "Archived", "Inherited", "Under its floor", "Share", "Corrected")
    rows = [
        (c.label_id, f"{c.count:,}", f"{c.archived:,}", f"{c.inherited:,}", f"{c.nearly:,}", f"{c.below_share:.0%}",
         f"{c.corrected:,}")
        for c in report.categories
    ]  # fmt: skip
    plots = "".join(
        f"<figure><figcaption>{escape(c.label_id)}</figcaption>"
        + svg.histogram(c.histogram, floors, f"{c.label_id}: confidence", _histogram_words(c.label_id, c.histogram))
        + "</figure>"
        for c in report.categories
        if sum(c.histogram)
    )
    names = [(c.label_id, float(c.count), float(c.archived)) for c in report.categories]
    words = "; ".join(f"{name} {n:,.0f}" for name, n, _ in names)
    usual = f"{EXPECTED_UNSURE:.0%} of the answers under the floor is usual; here it is {report.below_share:.1%}."
    return (
        f"<h2>Categories</h2>{_calm(usual)}{svg.bars(names, 'Mails by label, archived ones darker', words)}"
        f'{_table(head, rows)}<h3>How sure</h3><div class="small">{plots}</div>'
    )


def _histogram_words(label: str, counts: Sequence[int]) -> str:
    total = sum(counts)
    low = sum(counts[: len(counts) // 2])
    return f"{total:,} answers for {label}; {low:,} of them with a confidence under 0.5."


def _pairs(report: Report) -> str:
    note = f"Read from the newest {report.pairs_read:,} answers that were not sure."
    if not report.pairs:
        return f"<h2>Categories that compete</h2><p>None came close to another.</p>{_calm(note)}"
    rows = [
        (f"{p.first} / {p.second}", f"{p.count:,}", f"{p.forth:,} to {p.back:,}", "yes" if p.swaps else "", p.advice)
        for p in report.pairs
    ]
    head = ("First and second, near 0.4 each", "Times", "Who led", "Swap", "Sharpen")
    return f"<h2>Categories that compete</h2>{_table(head, rows, words=True)}{_calm(note)}"


def _corrections(report: Report) -> str:
    c = report.corrections
    rows = [(before, after, f"{n:,}") for before, after, n in c.relabelled]
    rows += [(label, "(label taken off)", f"{n:,}") for label, n in c.unlabelled.items()]
    rows += [(label, "(moved back from the archive)", f"{n:,}") for label, n in c.moved_back.items()]
    undone = f"{c.undone:,} decisions were taken back by `triage undo`." if c.undone else ""
    confirmed = f"{sum(c.confirmed.values()):,} decisions were read and left as they were."
    table = _table(("Decided", "A person made of it", "Times"), rows) if rows else "<p>None was found.</p>"
    return f"<h2>Corrections</h2>{table}{_calm(confirmed)}{_calm(undone)}"


def _calibration(found: Sequence[Calibration]) -> str:
    if not found:
        return (
            "<h2>Calibration</h2><p>Nothing was reviewed yet: no correction, and nothing read and left as it was.</p>"
        )
    plots = "".join(
        f"<figure><figcaption>{escape(c.label_id)} ({c.reviewed:,} reviewed, ECE {c.ece:.3f})</figcaption>"
        + svg.reliability(
            [(b.mean, b.right, b.count) for b in c.bins],
            f"{c.label_id}: claimed against right",
            f"{c.right:,} of {c.reviewed:,} reviewed decisions were right; calibration error {c.ece:.3f}.",
        )
        + "</figure>"
        for c in found
    )
    note = "Right: read by a person and left. Few reviews say little; a label nobody opens is never reviewed."
    return f'<h2>Calibration</h2>{_calm(note)}<div class="small">{plots}</div>'


def _answers(report: Report) -> str:
    rows = [(e.provider, f"{e.count:,}", f"{e.p50:,} ms", f"{e.p95:,} ms", f"{e.p99:,} ms", f"{e.most:,} ms")
            for e in report.latency]  # fmt: skip
    models = ", ".join(f"{escape(s.model)} ({s.answers:,})" for s in report.served)
    runs = ", ".join(
        f"{n:,} {trigger} {state}{' (' + escape(reason) + ')' if reason else ''}"
        for (trigger, state, reason), n in sorted(report.runs.items())
    )
    table = _table(("Provider", "Answers", "Median", "95%", "99%", "Most"), rows)
    served = _calm(f"Models as served: {models}")
    return f"<h2>Answers and runs</h2>{table}{served}{_calm(f'Runs: {runs}')}"


def _cost(report: Report) -> str:
    c = report.cost
    rows = [(domain, f"{n:,}", f"{tokens:,}") for domain, n, tokens in c.tail]
    told = (
        f"{money(c.usd)} in all, {money(c.per_1000)} per 1,000 mails; {c.input_tokens:,} tokens read, "
        f"{c.question_tokens:,} of them the question itself."
    )
    saved = (
        f"Threads saved about {c.saved_by_threads_tokens:,} tokens ({money(c.saved_by_threads_usd)}); "
        f"{c.links_removed:,} removed links about {c.saved_by_links_tokens:,}."
    )
    tail = f"<h3>Senders that take {c.tail_share:.0%} of all tokens</h3>" if rows else ""
    table = _table(("Sender", "Mails", "Tokens"), rows) if rows else ""
    return f"<h2>Cost</h2><p>{told}</p><p>{saved}</p>{tail}{table}"


def _tool(rates: Rates) -> str:
    if not rates.calls:
        return ""
    rows = [(state.replace("_", " "), f"{n:,}", f"{rates.share(n):.1%}") for state, n in sorted(rates.by_state.items())]
    return f"<h2>Mail tool</h2>{_calm(tool_words(rates))}{_table(('Answer', 'Calls', 'Share'), rows)}"


def _calm(text: str) -> str:
    return f'<p class="calm">{text}</p>' if text else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: bool = False) -> str:
    last = len(head) - 1
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="words">{escape(cell)}</td>' if words and n == last else f"<td>{escape(cell)}</td>"
            for n, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    heads = "".join(f'<th scope="col">{escape(h)}</th>' for h in head)
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
