/**
 * Turns lua/<kind>/*.lua into src/kinds/<kind>/scripts.generated.ts, for each kind.
 *
 * The header of a script is its interface, and the only place that defines the order of KEYS and ARGV. Each name in the
 * header becomes a local variable of the script (by a generated preamble) and a parameter of the TypeScript caller. So
 * header, script and caller cannot disagree about positions. The syntax tree is checked to find other errors. These
 * rules apply:
 * - Every name of the header is used, and every global is one that Redis offers.
 * - The code does not use KEYS and ARGV directly.
 * - A file that builds a key which is not in KEYS checks that this node serves that key (scripts/lua/keys.ts).
 * - The first words of the replies, arrays or texts, are those that the header lists.
 *
 * In a header, a trailing `?` marks an argument that may be absent, and a trailing `...` the rest of the list.
 *
 * `-- include: name` inserts lua/shared/name.lua. The generated module stores each included text once, and joins the
 * texts when the module is loaded. The header of an include declares which of its includer's names it takes, which of
 * these names it changes, and which names it gives to the includer. scripts/lua/names.ts refuses any other use of
 * names. `-- include: name { taken = expression }` passes an expression for the name `taken`. The include's other
 * locals are in a block of their own.
 *
 * In the texts that Redis receives, locals have short names (scripts/lua/short-names.ts). The module begins with a
 * table of these names.
 *
 * `Constants` in a header apply to all files, and are replaced by their values. For a single server, the text between
 * `--[[cluster` and `--]]` is a comment; for a cluster, src/redis/scripts.ts enables this text. The texts that Redis
 * receives have no comments, no indentation and no optional spaces.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { modulesOf } from './lua/module.ts'

// Each kind has its own module, so that a program contains only the scripts of the kinds that it uses.
for (const [kind, text] of modulesOf(new URL('../lua/', import.meta.url))) {
  const target = new URL(`../src/kinds/${kind}/scripts.generated.ts`, import.meta.url)
  mkdirSync(new URL('.', target), { recursive: true })
  // An unchanged file is not written, because another process may be reading it.
  if (!existsSync(target) || readFileSync(target, 'utf8') !== text) writeFileSync(target, text)
}
