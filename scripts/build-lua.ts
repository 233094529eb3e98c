/**
 * Turns lua/<kind>/*.lua into src/kinds/<kind>/scripts.generated.ts, for each kind.
 *
 * The header of a script is its interface and the only place where the order of KEYS and ARGV is written: the names in
 * it become the locals of the body (a preamble is generated) and the parameters of the TypeScript caller. So header,
 * body and caller cannot disagree about positions; what could still be wrong is checked here, on the syntax tree:
 *   - every name of the header is used, and nothing is a global that Redis does not offer;
 *   - KEYS and ARGV are not touched by hand;
 *   - a key that is none of KEYS is made where it is asked for (scripts/lua/keys.ts), and nowhere else;
 *   - the first words of the replies, arrays or texts, are those that the header lists.
 * A trailing `?` marks an argument that may be absent, a trailing `...` the rest of the list.
 *
 * `-- include: name` inserts lua/shared/name.lua in place; it is written once, and joined when it is loaded. The header of
 * an include says what it takes of its includer's names, which of them it changes, and what it gives; scripts/lua/names.ts
 * refuses anything else. `-- include: name { taken = expression }` gives it something that has another name here. What an
 * include makes for itself stays in a block of its own.
 *
 * Locals get short names in what Redis is sent (scripts/lua/short-names.ts), and the module begins with a table of them.
 *
 * `Constants` in a header are for all files, and become their values. What stands between `--[[cluster` and `--]]` is a
 * comment to a single server; src/redis/scripts.ts opens it for a cluster. Comments, indentation and the spaces that only
 * people need are left out of what Redis is sent.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { modulesOf } from './lua/module.ts'

// A module of its own for each kind, so that a program carries the scripts of those only that it uses.
for (const [kind, text] of modulesOf(new URL('../lua/', import.meta.url))) {
  const target = new URL(`../src/kinds/${kind}/scripts.generated.ts`, import.meta.url)
  mkdirSync(new URL('.', target), { recursive: true })
  // Left alone where nothing has changed: somebody may be reading it.
  if (!existsSync(target) || readFileSync(target, 'utf8') !== text) writeFileSync(target, text)
}
