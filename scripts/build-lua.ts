/**
 * Turns lua/<kind>/*.lua into src/kinds/<kind>/scripts.generated.ts, for each kind.
 *
 * The header of a script is its interface, and the only place where the order of KEYS and ARGV is written. The names in
 * it become the locals of the body (by a generated preamble) and the parameters of the TypeScript caller. So header,
 * body and caller cannot disagree about positions. The remaining errors are checked here, on the syntax tree:
 * - every name of the header is used, and there is no global that Redis does not offer;
 * - the code does not use KEYS and ARGV directly;
 * - a key that is not in KEYS is made where it is asked for (scripts/lua/keys.ts), and nowhere else;
 * - the first words of the replies, arrays or texts, are those that the header lists.
 *
 * A trailing `?` marks an argument that may be absent, a trailing `...` the rest of the list.
 *
 * `-- include: name` inserts lua/shared/name.lua. Its text is stored once, and joined when it is loaded. The header of
 * an include declares which of its includer's names it takes, which of them it changes, and which names it gives;
 * scripts/lua/names.ts refuses anything else. `-- include: name { taken = expression }` passes a value that has another
 * name here. Other locals of an include stay in a block of its own.
 *
 * Locals have short names in the texts that Redis receives (scripts/lua/short-names.ts). The module begins with a table
 * of them.
 *
 * `Constants` in a header apply to all files, and are replaced by their values. A single server ignores the text
 * between `--[[cluster` and `--]]` as a comment; src/redis/scripts.ts enables it for a cluster. Comments, indentation
 * and optional spaces are removed from what Redis receives.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { modulesOf } from './lua/module.ts'

// A module for each kind, so that a program contains only the scripts of the kinds that it uses.
for (const [kind, text] of modulesOf(new URL('../lua/', import.meta.url))) {
  const target = new URL(`../src/kinds/${kind}/scripts.generated.ts`, import.meta.url)
  mkdirSync(new URL('.', target), { recursive: true })
  // An unchanged file is not written, because another process may be reading it.
  if (!existsSync(target) || readFileSync(target, 'utf8') !== text) writeFileSync(target, text)
}
