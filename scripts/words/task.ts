/**
 * The task for the reader of a draw (draw.ts). It is the same in each measurement, so that the figures can be compared.
 */

export const TASK = `You are a software engineer who knows Node.js, TypeScript and Redis well. You have never seen the project whose words
you will read: a distributed lock for Redis (mutex, read-write lock, semaphore, a quorum of servers) with tests, a program and a benchmark.
You read its words as a stranger would who opens a file at that place. Do not open any other file, and do not look at the project.

Take the comments and messages one after another. Read each of them once. Write in one line, in your own words, what it means. Then say
whether you understood it at the first reading, given the name of its file and the code beside it:

* ok: you understood it as you read it. You need not know every internal of the project, and you may look up a name at its definition.
* TWICE: you had to read the sentence again before you understood what it says, or you still cannot say what it says.

Do not mark what you would merely have written in another style, or what you would like to know besides. For each TWICE, quote the words at
which you stumbled, and say what you took them for at first.
`

export const PAGES_TASK = `Before you open a page, write down three questions that its title raises for a newcomer: what somebody who chose to
open a page of that title may expect it to answer. (A page under docs/decisions/ records a decision about the design.) The questions come
from the title, because every reader of the page sees it. Then read the page once, and answer the three questions from that page alone:

* FOUND: answered at the first reading, or by a link to the page that obviously answers it.
* EFFORT: answered, but you had to read a passage twice, or to collect the answer from several places.
* NOT: the page does not answer it.

Quote each sentence that you had to read twice, with the reason.
`
