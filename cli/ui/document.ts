/**
 * Makes the page as it is before the first data about the locks arrive. Later, the page's script fills in the values.
 * The only elements that the script creates are table rows.
 */
import { type Markup, markup } from '../../benchmarks/report/html-markup.ts'
import { groupTitles } from '../description.ts'

/** Returns the page. `place` is the address of Redis, which the page shows as its heading. */
export function documentOf(place: string, prefix: string, mayRelease: boolean): string {
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Locks at ${place}</title>
<link rel="icon" href="icon.svg">
<link rel="stylesheet" href="style.css">
<script type="module" src="page.js"></script>
</head>
<body>
<header>
<h1>Locks</h1>
<p class="place">${place}, prefix <bdi>${prefix}</bdi>${!mayRelease && ', read-only'}</p>
<p id="state" role="status">connecting</p>
</header>
<noscript><p class="alarm">This page needs JavaScript. Allow it for this page; all scripts come from the program that serves the page.</p></noscript>
<div id="trouble" class="alarm" hidden><p id="reason" role="alert"></p><p id="age"></p></div>
<main id="main">
<section id="overview" aria-label="All locks together">
<dl><div><dt>held</dt><dd id="held">–</dd></div><div><dt>with a queue</dt><dd id="queued">–</dd></div><div><dt>waiting</dt><dd id="waiters">–</dd></div></dl>
${trend('all', 'Wait times in all queues')}
</section>
<section id="list" aria-label="Locks">
<div class="tools"><label for="filter">Filter</label><input id="filter" type="search" aria-label="Filter" placeholder="filter by lock, holder or waiter" autocomplete="off" spellcheck="false" maxlength="200"><p id="count" role="status"></p></div>
<table role="table" id="locks">
<thead role="rowgroup"><tr role="row">${columns.map(
    ({ name, order, figure }) => markup`
<th role="columnheader" scope="col"${figure && markup` class="figure"`}${order && markup` data-order="${order}" aria-sort="none"`}>${
      order ? markup`<button type="button">${name}</button>` : name
    }</th>`,
  )}</tr></thead>
<tbody role="rowgroup" id="rows"></tbody>
</table>
<p id="none" hidden></p>
<button type="button" id="more" hidden></button>
</section>
<section id="lock" aria-labelledby="name" hidden>
<div class="title"><h2 id="name" tabindex="-1"></h2><button type="button" id="close">Close</button></div>
<p class="said" id="said" hidden></p>
<dl class="facts" id="facts">
<div><dt>held by</dt><dd id="holder"></dd></div>
<div><dt>for</dt><dd id="for"></dd></div>
<div><dt>lease ends in</dt><dd><span id="left"></span> <span class="bar" id="bar" aria-hidden="true"><span></span></span></dd></div>
<div><dt>owner</dt><dd id="owner"></dd></div>
<div><dt>holds</dt><dd id="holds"></dd></div>
<div><dt>fencing token</dt><dd id="token"></dd></div>
</dl>
<div class="tools" id="narrow" hidden><label for="within">Filter</label><input id="within" type="search" aria-label="Filter this lock" placeholder="filter by group, holder or waiter" autocomplete="off" spellcheck="false" maxlength="200"></div>
<table role="table" id="groups" hidden>
<caption>Groups, those with most waiters first</caption>
<thead role="rowgroup"><tr role="row">${groupTitles.map(
    (title, i) => markup`<th role="columnheader" scope="col"${i > 0 && markup` class="figure"`}>${title}</th>`,
  )}</tr></thead>
<tbody role="rowgroup" id="grouping"></tbody>
</table>
<button type="button" id="further-groups" hidden></button>
<table role="table" id="holders" hidden>
<caption>Holders, the earliest grant first</caption>
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">holds<span class="second of-group">group</span></th><th role="columnheader" scope="col" class="figure part"><span class="part-title"></span></th><th role="columnheader" scope="col" class="figure for">for</th><th role="columnheader" scope="col" class="figure ends">ends in</th>${
    mayRelease && markup`<th role="columnheader" scope="col" class="take"></th>`
  }</tr></thead>
<tbody role="rowgroup" id="holding"></tbody>
</table>
<button type="button" id="others" hidden></button>
${mayRelease && markup`<p class="release"><button type="button" id="release">Release…</button> <span id="outcome" role="status"></span></p>`}
${trend('one', 'Wait times in this queue')}
<table role="table" id="queue">
<caption>Queue, in the order in which waiters get the lock</caption>
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col" class="figure"><abbr title="position">#</abbr></th><th role="columnheader" scope="col">waits<span class="second of-group">group</span></th><th role="columnheader" scope="col" class="figure part"><span class="part-title"></span><span class="second of-group"><abbr title="permits: too few are free; group: its group is full; turn: another waiter is before it">why</abbr></span></th><th role="columnheader" scope="col" class="figure for">for</th><th role="columnheader" scope="col" class="figure ends">expires in<span class="second of-estimate">expected</span></th></tr></thead>
<tbody role="rowgroup" id="waiting"></tbody>
</table>
<p id="nobody" hidden>No fair waiter is in the queue. Unfair waiters are not shown, because Redis does not know of them.</p>
<button type="button" id="further" hidden></button>
</section>
</main>
${mayRelease && confirmation}
</body>
</html>
`
  return page.text
}

/** The columns of the table, from left to right. `order` is the server's sort order for the column. */
const columns: readonly { readonly name: string; readonly order?: string; readonly figure?: boolean }[] = [
  { name: 'Lock', order: 'key' },
  { name: 'Holder' },
  { name: 'Held for', order: 'heldFor', figure: true },
  { name: 'Time left', order: 'timeLeft', figure: true },
  { name: 'Waiting', order: 'waiters', figure: true },
  { name: 'Longest wait', order: 'longestWait', figure: true },
]

function trend(id: string, title: string): Markup {
  return markup`<figure class="trend" id="trend-${id}">
<figcaption>${title}: <span class="longest">longest <b></b></span> <span class="middle">median <b></b></span></figcaption>
<div class="field"><svg viewBox="0 0 600 100" preserveAspectRatio="none" aria-hidden="true"><path class="area"/><path class="line"/><path class="middle"/></svg>
<span class="top"></span></div>
<p class="axis"><span>5 minutes ago</span><span>now</span></p>
</figure>`
}

const confirmation = markup`<dialog id="confirm" aria-labelledby="question">
<h2 id="question">Take this lock from its holder?</h2>
<p class="key" id="taken"></p>
<p id="from"></p>
<p>The holder is notified, and the next waiter in the queue gets the lock. The holder may still finish what it has started; only a fencing token prevents that.</p>
<form method="dialog"><button type="submit" value="no" autofocus>Leave it</button> <button type="submit" value="yes" class="danger">Release it</button></form>
</dialog>`
