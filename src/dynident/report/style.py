"""The look of the page: light and dark, screen and paper, wide and narrow.

The colours are told apart with any colour vision (after Okabe & Ito 2008), and none stands alone: lines differ in width
and place, marks of trust in shape and word.
"""

from __future__ import annotations

CSS = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --box: #f5f7f9; --line: #d4dae0; --text: #1b2026; --soft: #57616c; --link: #0a58a0;
  --measured: #a9b4bf; --dots: #93a1ae; --predicted: #00508c; --residual: #b34700;
  --good: #00694c; --fair: #9a6200; --weak: #b3261e; --none: #6a2c70; --glow: #00508c22;
  --alert: #fff4e0; --alert-edge: #c47f00;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #14181c; --box: #1d2329; --line: #39424b; --text: #e6eaee; --soft: #a3aeb9; --link: #7cc0f5;
    --measured: #66727e; --dots: #76838f; --predicted: #7cc8ff; --residual: #ffa04d;
    --good: #4fd1a5; --fair: #f0b429; --weak: #ff8a80; --none: #dba3e0; --glow: #7cc8ff2e;
    --alert: #33290f; --alert-edge: #d99a1f;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
}
header, main, footer { max-width: 1160px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 28px; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 44px 0 10px; padding-top: 10px; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 24px 0 8px; overflow-wrap: anywhere; }
p { margin: 8px 0; max-width: 46rem; overflow-wrap: anywhere; }
ul { margin: 8px 0; padding-left: 22px; max-width: 46rem; }
li { margin: 4px 0; overflow-wrap: anywhere; }
a { color: var(--link); }
nav { display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 0.9rem; margin: 12px 0 0; }
.soft { color: var(--soft); font-size: 0.9rem; }
code { font: 0.88em/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
code.command {
  display: block; padding: 10px 12px; background: var(--box); border: 1px solid var(--line); border-radius: 6px;
  white-space: pre-wrap; overflow-wrap: anywhere;
}
.verdict {
  background: var(--box); border: 1px solid var(--line); border-radius: 8px; padding: 16px 20px; margin-top: 20px;
}
.verdict h2 { border: 0; margin: 0; padding: 0; font-size: 1.5rem; }
.verdict p { max-width: 60rem; }
.caveat, .warnings {
  background: var(--alert); border-left: 4px solid var(--alert-edge); border-radius: 4px; padding: 8px 12px;
  max-width: 52rem;
}
.warnings ul { margin: 0; }
.share { display: flex; gap: 2px; height: 14px; margin: 14px 0 6px; border-radius: 4px; overflow: hidden; }
.share span { display: block; min-width: 3px; }
.key {
  display: flex; flex-wrap: wrap; gap: 2px 20px; margin: 0; padding: 0; list-style: none;
  font-size: 0.9rem; max-width: none;
}
.share .good { background: var(--good); } .share .fair { background: var(--fair); opacity: 0.75; }
.share .weak { background: repeating-linear-gradient(45deg, var(--weak) 0 3px, transparent 3px 6px); }
.share .none { border: 1px solid var(--none); }
.mark { white-space: nowrap; font-size: 0.9em; }
.mark b { letter-spacing: 1px; margin-right: 4px; font-weight: normal; }
.mark.good { color: var(--good); } .mark.fair { color: var(--fair); } .mark.weak { color: var(--weak); }
.mark.none { color: var(--none); }
.wide { overflow-x: auto; margin: 12px 0; border: 1px solid var(--line); border-radius: 6px; }
.wide:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 1px; }
table {
  border-collapse: separate; border-spacing: 0; font-size: 0.9rem; width: 100%; font-variant-numeric: tabular-nums;
}
caption span { position: sticky; left: 12px; display: inline-block; max-width: calc(100vw - 60px); }
caption { text-align: left; padding: 8px 12px; color: var(--soft); background: var(--box); font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 5px 12px; border-top: 1px solid var(--line); }
thead th { vertical-align: bottom; background: var(--box); font-weight: 600; }
tbody th {
  font-weight: 600; position: sticky; left: 0; background: var(--paper); max-width: 18rem; overflow-wrap: break-word;
}
tbody th:not(.number) { min-width: 6.5rem; }
th.number, td.number { text-align: right; }
td.number { white-space: nowrap; }
tr.total th, tr.total td { border-top: 2px solid var(--soft); font-weight: 600; }
td.long { min-width: 15rem; overflow-wrap: anywhere; }
td.long code { color: var(--soft); display: block; }
td.text { min-width: 9rem; overflow-wrap: anywhere; }
.legend {
  display: flex; flex-wrap: wrap; gap: 4px 22px; font-size: 0.9rem; margin: 8px 0; padding: 0; list-style: none;
}
.legend i { display: inline-block; width: 26px; vertical-align: middle; margin-right: 7px; }
.legend .measured { border-top: 5px solid var(--measured); }
.legend .predicted { border-top: 2px solid var(--predicted); }
.legend .dots { width: 9px; height: 9px; border-radius: 50%; background: var(--dots); }
.legend .residual { border-top: 2px solid var(--residual); }
.tag {
  font-size: 0.78rem; font-weight: 600; border: 1px solid currentColor; border-radius: 9px; padding: 1px 8px;
  color: var(--soft); white-space: nowrap;
}
.tag.unseen { color: var(--good); }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: 14px 20px; }
.panels figure { margin: 0; break-inside: avoid; min-width: 0; }
.panels figcaption span { color: var(--soft); font-weight: normal; }
.panels figcaption { font-size: 0.9rem; font-weight: 600; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: auto; overflow: hidden; }
svg text {
  font: 24px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
  fill: var(--soft);
}
svg .end { text-anchor: end; } svg .mid { text-anchor: middle; }
svg .grid { stroke: var(--line); stroke-width: 1.5; fill: none; } svg .zero { stroke: var(--soft); stroke-width: 1.5; }
svg path { fill: none; stroke-linejoin: round; stroke-linecap: round; }
svg .measured { stroke: var(--measured); stroke-width: 6; }
svg .predicted { stroke: var(--predicted); stroke-width: 2.2; }
svg .dots { stroke: var(--dots); stroke-width: 8; } svg .model { stroke-width: 4; }
svg .residual { stroke: var(--residual); stroke-width: 2; }
svg .band { fill: var(--glow); stroke: none; } .legend .band { height: 12px; background: var(--glow); }
svg .bar { fill: var(--predicted); } svg .bar.open { fill: none; stroke: var(--none); stroke-width: 2; }
svg .name { fill: var(--text); }
svg .picked { fill: var(--glow); } svg[data-frame] { cursor: crosshair; touch-action: pan-y; user-select: none; }
.tools { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin: 8px 0; max-width: none; }
button, select {
  font: inherit; font-size: 0.9rem; color: var(--text); background: var(--box); border: 1px solid var(--line);
  border-radius: 6px; padding: 4px 10px; min-height: 32px; cursor: pointer;
}
button:hover, select:hover { border-color: var(--soft); }
button:focus-visible, select:focus-visible, a:focus-visible, svg:focus-visible, [tabindex]:focus-visible {
  outline: 2px solid var(--link); outline-offset: 1px;
}
button.sort {
  all: unset; cursor: pointer; font: inherit; font-weight: 600;
}
button.sort:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
th[aria-sort="ascending"] .sort::after { content: " ▲"; } th[aria-sort="descending"] .sort::after { content: " ▼"; }
.panels.single { grid-template-columns: 1fr; }
[hidden] { display: none !important; }
figure.robot { margin: 0; max-width: 860px; } figure.robot figcaption { font-size: 0.9rem; color: var(--soft); }
figure.robot svg {
  background: var(--box); border: 1px solid var(--line); border-radius: 8px; cursor: grab; touch-action: pan-y;
  user-select: none;
}
svg .link { stroke: var(--text); stroke-width: 9; }
svg .dot { fill: var(--predicted); stroke: var(--paper); stroke-width: 2; }
svg .body { fill: var(--glow); stroke: var(--predicted); stroke-width: 2.5; }
svg .body.open { stroke-dasharray: 10 7; }
svg .axis { stroke-width: 4; stroke: var(--soft); }
svg.bare .body { display: none; } svg.nameless text { display: none; }
figure.bars { margin: 14px 0; max-width: 760px; } figure.bars figcaption { font-size: 0.9rem; font-weight: 600; }
table.map { width: auto; } table.map th, table.map td { text-align: center; padding: 3px 8px; }
table.map tbody th { text-align: left; white-space: nowrap; }
.wide:has(> table.map) { width: fit-content; max-width: 100%; }
.cell span:focus::after {
  content: attr(title); position: fixed; left: 14px; bottom: 14px; max-width: calc(100vw - 28px); z-index: 2;
  padding: 8px 12px; text-align: left; font-weight: normal; color: var(--text); background: var(--box);
  border: 1px solid var(--soft); border-radius: 6px;
}
.cell { font-weight: 600; } .cell.good { color: var(--good); } .cell.fair { color: var(--fair); }
.cell.weak { color: var(--weak); } .cell.none { color: var(--none); } .cell.sum, .cell.no { color: var(--soft); }
.key b.cell { display: inline-block; min-width: 1.4em; }
details { margin: 12px 0; border: 1px solid var(--line); border-radius: 6px; padding: 0 14px; }
details > summary { cursor: pointer; padding: 9px 0; font-weight: 600; overflow-wrap: anywhere; }
details[open] { padding-bottom: 14px; }
dl { display: grid; grid-template-columns: minmax(9rem, auto) 1fr; gap: 4px 18px; margin: 8px 0; font-size: 0.95rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
footer { margin-top: 44px; padding-bottom: 30px; color: var(--soft); font-size: 0.9rem; }
@media (max-width: 600px) {
  header, main, footer { padding-left: 14px; padding-right: 14px; }
  .verdict { padding: 12px 14px; }
  .verdict h2 { font-size: 1.3rem; }
  h1 { font-size: 1.4rem; }
  table { font-size: 0.84rem; }
  th, td { padding: 5px 7px; }
  tbody th { max-width: 11rem; }
  td.long { min-width: 24rem; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: 8px; }
  svg text { font-size: 29px; }
}
@media print {
  @page { margin: 14mm; }
  body { font-size: 10.5pt; }
  header, main, footer { max-width: none; padding: 0; }
  nav, .tools { display: none; }
  h2, h3, figcaption { break-after: avoid; }
  tr, figure, .verdict { break-inside: avoid; }
  thead { display: table-header-group; }
  .wide { overflow: visible; }
  table { font-size: 8.5pt; }
  th, td { padding: 3px 6px; }
  tbody th { position: static; min-width: 10em; }
  .panels { grid-template-columns: 1fr 1fr; }
  figure.robot { max-width: 130mm; } figure.bars { max-width: 110mm; }
  p { orphans: 3; widows: 3; } footer { margin-top: 6mm; padding: 0; }
  .wide:not(:has(tbody tr:nth-child(13))) { break-inside: avoid; }
  .cell span:focus::after { display: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""
