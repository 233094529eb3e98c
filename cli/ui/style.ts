/** The page's style sheet, and its icon. */
import { palette } from '../../benchmarks/report/html-style.ts'

export const style = `${palette}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0 auto; max-width: 1400px; padding: 20px 24px; background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", sans-serif; font-variant-numeric: tabular-nums; }
h1, h2 { line-height: 1.25; margin: 0; }
h1 { font-size: 24px; }
h2 { font-size: 18px; }
p { margin: 0; }
dl, dd, figure { margin: 0; }
button, input { font: inherit; color: inherit; background: var(--page); border: 1px solid var(--edge); border-radius: 6px; padding: 5px 12px; }
button { cursor: pointer; }
button:hover { background: var(--raised); }
button:disabled { color: var(--faint); cursor: default; }
:focus-visible { outline: 2px solid var(--order); outline-offset: 2px; }

header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 16px; }
.place { color: var(--faint); overflow-wrap: anywhere; }
#state { margin-left: auto; color: var(--faint); white-space: nowrap; }
#state::before { content: ""; display: inline-block; width: 9px; height: 9px; margin-right: 7px; border-radius: 50%; border: 2px solid var(--faint); }
#state.live::before { background: var(--rival); border-color: var(--rival); }
#state:is(.late, .lost, .over)::before { border-color: var(--alarm); }
.alarm { margin-top: 12px; padding: 10px 14px; border-left: 4px solid var(--alarm); background: var(--raised); overflow-wrap: anywhere; }
#reason { color: var(--alarm); font-weight: 600; }

#overview { display: grid; grid-template-columns: auto 1fr; gap: 16px 40px; align-items: center; margin-top: 16px; }
#overview dl { display: flex; gap: 32px; }
#overview dl div { display: flex; flex-direction: column-reverse; }
#overview dd { font-size: 30px; line-height: 1.1; font-weight: 600; }
dt, caption, figcaption { color: var(--faint); font-size: 13px; }

/* The figures above a chart have the colours of its lines, so they are the chart's legend. */
.trend b { font-weight: 600; }
figcaption span { white-space: nowrap; }
.trend .longest { color: var(--order); margin-left: 10px; }
.trend span.middle { color: var(--baton); margin-left: 10px; }
.trend .field { position: relative; margin-top: 4px; }
.trend svg { display: block; width: 100%; height: 56px; border-bottom: 1px solid var(--edge); border-top: 1px dashed var(--grid); overflow: hidden; }
.trend path { fill: none; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.trend .area { fill: var(--order); opacity: .14; }
.trend .line { stroke: var(--order); stroke-width: 1.5px; }
.trend path.middle { stroke: var(--baton); stroke-width: 1.5px; }
.trend .top { position: absolute; top: 2px; left: 0; padding-right: 4px; font-size: 12px; line-height: 1.2; color: var(--faint); background: var(--page); }
.trend .axis { display: flex; justify-content: space-between; font-size: 12px; color: var(--faint); }

main { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 32px; align-items: start; }
.tools { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 12px; margin: 20px 0 8px; }
.tools label { color: var(--faint); }
.tools input { flex: 0 1 280px; min-width: 0; }
.tools p { color: var(--faint); margin-left: auto; }
#none, #nobody { color: var(--faint); padding: 14px 0; }
#more, #further, #further-groups { margin-top: 12px; }

table { width: 100%; border-collapse: collapse; table-layout: fixed; }
caption { text-align: left; padding: 16px 0 4px; }
th, td { padding: 5px 9px; text-align: left; font-weight: 400; border-bottom: 1px solid var(--grid); white-space: pre; overflow: hidden; text-overflow: ellipsis; }
/* Names may be written from right to left, or have tall stacks of accents. Neither may affect other cells. */
td bdi { display: block; overflow: hidden; overflow: clip; text-overflow: ellipsis; }
thead th { overflow: visible; color: var(--faint); font-size: 13px; border-bottom-color: var(--edge); }
.figure { text-align: right; }
thead button { position: relative; border: 0; padding: 2px 0; font-size: 13px; color: inherit; background: none; }
thead button:hover { color: var(--text); background: none; text-decoration: underline; }
[aria-sort]:not([aria-sort="none"]) button { color: var(--text); font-weight: 600; }
/* The sort arrow is between the columns, so that it moves no text. */
thead button::after { content: "\\2193"; visibility: hidden; position: absolute; left: calc(100% + 1px); }
[aria-sort="ascending"] button::after { content: "\\2191"; visibility: visible; }
[aria-sort="descending"] button::after { visibility: visible; }
#locks thead th:nth-child(1) { width: 30%; } #locks thead [data-order="heldFor"] { width: 92px; } #locks thead [data-order="timeLeft"] { width: 140px; }
#locks thead [data-order="waiters"] { width: 88px; } #locks thead [data-order="longestWait"] { width: 112px; }
main:not(.open) #locks thead th:nth-child(1) { width: 38%; }
#locks tbody tr { cursor: pointer; }
#locks tbody tr:hover { background: var(--raised); }
#locks tbody tr[aria-current] { background: var(--wash); }
.key button { display: block; width: 100%; padding: 0; border: 0; border-radius: 2px; background: none; text-align: left; font-weight: 600; overflow: hidden; text-overflow: ellipsis; }
.key button:hover { text-decoration: underline; }
.named { display: flex; align-items: baseline; gap: 8px; }
.named button { width: auto; }
.kind { flex: none; color: var(--faint); font-size: 13px; }
.several { display: flex; } .several bdi { min-width: 0; }
.several span { flex: none; white-space: pre; }
.left { display: flex; align-items: center; justify-content: flex-end; gap: 8px; }
.bar { flex: 0 1 72px; display: inline-block; height: 6px; min-width: 24px; border-radius: 3px; background: var(--grid); overflow: hidden; }
.bar span { display: block; height: 100%; border-radius: 3px; background: var(--rival); transform: scaleX(var(--share, 0)); transform-origin: left; }
/* The bar of a lease with little time left. A lease that is being renewed never falls below two thirds. */
.bar.low span { background: var(--baton); }

#lock { margin-top: 20px; padding: 16px; border: 1px solid var(--edge); border-radius: 8px; min-width: 0; }
.title { display: flex; align-items: start; justify-content: space-between; gap: 12px; }
#name { white-space: pre-wrap; overflow-wrap: anywhere; overflow: hidden; overflow: clip; min-width: 0; outline-offset: 4px; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 8px 20px; margin: 12px 0; }
.facts dd { overflow-wrap: anywhere; min-height: 1.45em; }
.facts .bar { width: 72px; margin-left: 6px; vertical-align: 2px; }
#lock .trend { margin-top: 16px; }
.said { margin: 8px 0 0; overflow-wrap: anywhere; }
:is(#queue, #holders, #groups) :is(th, td) { padding: 5px 6px; }
#groups .figure { width: 66px; }
#queue th:first-child { width: 40px; } :is(#queue, #holders) .part { width: 62px; } :is(#queue, #holders) .for { width: 70px; } #queue .ends { width: 84px; } #holders .ends { width: 66px; }
#lock:not(.shared) .part { display: none; }
.second { display: block; color: var(--faint); font-size: 13px; }
#lock:not(.grouped) .of-group, #lock:not(.estimated) .of-estimate { display: none; }
#holders .take { width: 76px; text-align: right; }
#holders button { padding: 0 8px; font-size: 13px; }
#others { margin-top: 12px; }
.release { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 12px; }
#outcome { overflow-wrap: anywhere; }
abbr { text-decoration: none; }

dialog { max-width: min(520px, calc(100vw - 32px)); padding: 20px 24px; color: var(--text); background: var(--page); border: 1px solid var(--edge); border-radius: 10px; }
dialog::backdrop { background: rgb(0 0 0 / .45); }
dialog p { margin: 12px 0; overflow-wrap: anywhere; }
dialog .key { white-space: pre-wrap; font-weight: 600; max-height: 30vh; overflow: auto; }
dialog form { display: flex; justify-content: flex-end; gap: 12px; margin-top: 20px; }
.danger { color: var(--alarm); border-color: var(--alarm); }

/* If there is room, the opened lock is beside the list and always visible. Otherwise it takes the list's place. */
@media (min-width: 1301px) {
  main.open { grid-template-columns: minmax(0, 1fr) minmax(0, 430px); }
  main.open #overview { grid-column: 1 / -1; }
  #lock { position: sticky; top: 16px; max-height: calc(100vh - 32px); overflow: auto; }
}
@media (max-width: 1300px) { main.open #overview, main.open #list { display: none; } }
@media (max-width: 760px) {
  body { padding: 14px 14px 24px; }
  #overview { grid-template-columns: minmax(0, 1fr); }
  #overview dl { justify-content: space-between; }
  #overview dd { font-size: 24px; }
  .tools { margin-top: 14px; } .tools label { display: none; } .tools input { flex: 1 1 160px; }
  /* Two lines per lock, and a third for its queue. The sort buttons are above all locks. */
  #locks, #locks thead, #locks tbody { display: block; }
  #locks thead tr { display: flex; flex-wrap: wrap; gap: 0 19px; padding-bottom: 4px; border-bottom: 1px solid var(--edge); }
  #locks thead th { width: auto !important; padding: 2px 0; border: 0; }
  #locks thead th:not([data-order]) { display: none; }
  #locks tbody tr { display: grid; grid-template-columns: minmax(0, 1fr) 8.5em; gap: 0 14px; padding: 8px 4px; border-bottom: 1px solid var(--grid); }
  #locks tbody :is(th, td) { padding: 0; border: 0; }
  #locks .time { grid-area: 1 / 2; }
  #locks :is(.holder, .held, .waiters, .wait) { font-size: 14px; color: var(--faint); }
  #locks .waiters { text-align: left; color: var(--text); }
  #locks .held:not(:empty)::before { content: "held for "; }
  #locks .waiters:not(:empty)::after { content: " waiting"; }
  #locks .wait:not(:empty)::before { content: "longest "; }
  #lock { padding: 12px; margin-top: 14px; }
  :is(#queue, #holders, #groups) td { font-size: 14px; }
  :is(#queue, #holders, #groups) :is(th, td) { padding: 5px 4px; }
  #groups .figure { width: 56px; }
  #queue th:first-child { width: 32px; } :is(#queue, #holders) .part { width: 54px; } :is(#queue, #holders) .for { width: 62px; } #queue .ends { width: 76px; } #holders .ends { width: 58px; }
}
`

/** The icon: a baton that is being handed over. */
export const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0069a6"/><path d="M8 24 24 8" stroke="#fff" stroke-width="6" stroke-linecap="round"/></svg>'
