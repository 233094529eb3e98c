/**
 * Colours of the pages that this program makes. The hues are from Okabe and Ito's palette, which people with the common
 * kinds of colour blindness can distinguish. They are darkened for white and lightened for black until each has a
 * contrast of at least 4.5 : 1. Text needs this contrast, and the names of rivals are text in these colours.
 */
export const palette = `
:root { --page: #fff; --raised: #f6f7f8; --text: #1b1f24; --faint: #59636e; --edge: #d5dae0; --grid: #e4e7eb;
  --baton: #b84500; --order: #0069a6; --rival: #00795a; --floor: #6b7280; --alarm: #b3001e; --wash: #fff4ec; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171a; --raised: #1d2125; --text: #e8eaed; --faint: #a0a8b2; --edge: #3a4149; --grid: #2c3238;
    --baton: #ff9a57; --order: #62b9ee; --rival: #3cc79f; --floor: #9aa3ae; --alarm: #ff8090; --wash: #2b2019; }
}
`

/** The report's style sheet. */
export const style = `${palette}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1200px; padding: 24px; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; overflow-wrap: anywhere; }
h1, h2, h3, h4 { line-height: 1.25; margin: 0; }
h1 { font-size: 28px; }
h2 { font-size: 21px; margin-bottom: 8px; }
h4 { font-size: 16px; }
p { margin: 0 0 8px; }
a { color: inherit; text-decoration-color: var(--faint); text-underline-offset: 3px; }
:focus-visible { outline: 2px solid var(--baton); outline-offset: 2px; }
section { margin-top: 40px; padding-top: 24px; border-top: 1px solid var(--edge); }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 20px; padding: 0; margin: 16px 0 0; }
header > p, .about, figcaption p, .axis-title, dd, caption { color: var(--faint); }
figcaption p { max-width: 88ch; }
.about code { color: var(--text); margin-right: 8px; }
.notes { margin: 16px 0 0; padding: 12px 16px 12px 32px; background: var(--raised); border-left: 4px solid var(--edge); }
.notes .alarm, td.alarm { color: var(--alarm); }
dl { display: grid; grid-template-columns: minmax(9em, 15em) 1fr; gap: 8px 24px; margin: 16px 0 0; }
dl.facts { display: block; }
dl.facts div { display: grid; grid-template-columns: minmax(9em, 15em) 1fr; gap: 0 24px; padding: 4px 0; }
dt { font-weight: 600; }
dd { margin: 0; max-width: 88ch; }
.legend { list-style: none; padding: 0; margin: 8px 0 0; display: flex; flex-wrap: wrap; gap: 4px 28px; }
.sample { display: inline-block; width: 28px; height: 14px; vertical-align: -2px; }

/* One colour per kind, for the marks and the name. */
.baton { --mark: var(--baton); } .rival { --mark: var(--rival); } .rival.fair { --mark: var(--order); } .floor { --mark: var(--floor); }

figure { margin: 24px 0 0; container-type: inline-size; min-width: 0; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 8px 48px; }
svg { display: block; overflow: visible; }
svg svg { overflow: hidden; }
text { fill: var(--faint); font-size: 12px; text-anchor: middle; }
.grid { stroke: var(--grid); }
.mark { fill: var(--mark); stroke: var(--mark); stroke-width: 2px; }
.rival:not(.fair) .mark { fill: var(--page); }
.range { stroke: var(--mark); stroke-width: 2.5px; }
.floor .range { stroke-dasharray: 4 3; }
.second { stroke: var(--mark); stroke-width: 2px; }
.hill { fill: var(--mark); opacity: .4; }
.middle .hill { opacity: .2; }
.stroke { stroke: var(--mark); stroke-width: 2px; }
.course, .ideal, .ghost { fill: none; stroke: var(--mark); stroke-width: 2px; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.floor .course { stroke-dasharray: 5 4; }
.ideal { stroke: var(--edge); stroke-width: 1px; stroke-dasharray: 1 3; }
.ghost { stroke: var(--edge); stroke-width: 1px; }

.row { display: grid; grid-template-columns: minmax(112px, 33%) 1fr 76px; column-gap: 12px; align-items: center; }
.many .row { grid-template-columns: 184px 1fr repeat(var(--cells), 66px); }
@container (max-width: 760px) { .many .row { grid-template-columns: 120px 1fr repeat(var(--cells), 56px); } }
.row > svg { width: 100%; height: 26px; }
.tall .row > svg { height: 46px; }
.middle .row > svg { height: 34px; }
.row .name { font-size: 13px; line-height: 1.2; color: var(--mark, inherit); }
.row.baton { background: var(--wash); }
.row.baton .name, .panel.baton .name, tr.baton th { font-weight: 700; }
.row .cell { text-align: right; font-size: 14px; font-variant-numeric: tabular-nums; white-space: nowrap; }
.row .cell small { display: none; }
.row.head .cell { font-size: 12px; color: var(--faint); }
.plot .row.axis > svg { height: 20px; border-top: 1px solid var(--edge); }
.axis-title { font-size: 12px; text-align: center; margin: 0; }
/* If name, drawing and figures do not fit side by side, the drawing goes below. */
@container (max-width: 440px) {
  .row, .many .row { grid-template-columns: 1fr auto; padding-top: 4px; }
  .row > svg { grid-column: 1 / -1; grid-row: 2; }
  .row.head { display: none; }
  .many .row { grid-template-columns: repeat(var(--cells), 1fr); }
  .many .row .name { grid-column: 1 / -1; }
  .many .row .cell { grid-row: 3; text-align: left; font-size: 13px; }
  .many .cell small { display: block; color: var(--faint); font-size: 11px; line-height: 1.2; }
  .row.axis, .row.axis-title { padding: 0; } .row.axis .name, .row.axis-title .name { display: none; }
  .row.axis-title span { grid-column: 1 / -1; }
}
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(210px, 1fr)); gap: 16px 24px; margin-top: 12px; }
.panel .name { margin: 0 0 4px; font-size: 13px; line-height: 1.2; color: var(--mark); }
.chart { display: grid; grid-template-columns: 46px 1fr; column-gap: 6px; }
.chart .y svg { width: 100%; height: 110px; }
.chart .y text { text-anchor: end; }
.chart text { font-size: 11px; }
.field { width: 100%; height: 110px; border-bottom: 1px solid var(--edge); }
.x { width: 100%; height: 20px; }
.panel .mark { stroke-width: 1.5px; }

/* A shadow at an edge shows that the table continues there. It is covered once the table is scrolled to that end. */
.scroll { background: linear-gradient(to right, var(--page) 40%, transparent) left / 48px 100% no-repeat local,
    linear-gradient(to left, var(--page) 40%, transparent) right / 48px 100% no-repeat local,
    linear-gradient(to right, var(--edge), transparent) left / 14px 100% no-repeat scroll,
    linear-gradient(to left, var(--edge), transparent) right / 14px 100% no-repeat scroll;
  overflow-x: auto; margin-top: 24px; border: 1px solid var(--edge); border-radius: 4px; }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { text-align: left; padding: 8px 12px; }
caption span { display: inline-block; position: sticky; left: 12px; max-width: min(88ch, 100vw - 58px); }
th, td { padding: 6px 12px; text-align: right; vertical-align: top; border-top: 1px solid var(--edge); white-space: nowrap; }
thead th { white-space: normal; min-width: 84px; vertical-align: bottom; font-weight: 600; line-height: 1.25; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--page); min-width: 150px; max-width: 190px; white-space: normal; }
tbody th { font-weight: 500; }
tbody th > span { color: var(--mark); }
tr.baton > * { background: var(--wash); }
td small, th small, .name small { display: block; font-weight: 400; color: var(--faint); font-size: 11px; }
td p { margin: 0; max-width: 80ch; white-space: normal; overflow-wrap: anywhere; }
.absent td, .words td, .words th { text-align: left; }
.absent p { color: var(--faint); }
.glance th:first-child { max-width: none; }
.glance td { white-space: normal; min-width: 96px; }
.words p { min-width: 32ch; }
h3 { font-size: 16px; margin-top: 24px; }
.failures span { color: var(--faint); }
@media (max-width: 640px) {
  body { padding: 16px; }
  th:first-child { min-width: 100px; max-width: 120px; }
  .glance th:first-child { max-width: 130px; }
  th, td { padding: 6px 8px; }
  .tiles { grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); column-gap: 16px; }
  dl, dl.facts div { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 12px; } dl.facts dd { margin-bottom: 4px; }
}
@media print { .scroll { overflow: visible; } section { break-before: auto; } figure { break-inside: avoid; } }
`
