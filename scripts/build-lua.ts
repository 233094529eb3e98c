/**
 * Turns lua/<folder>/*.lua, the scripts, into src/kinds/<folder>/scripts.generated.ts.
 *
 * The header of a script is its interface, and the only place that defines the order of KEYS and ARGV. Each name in the
 * header becomes a local variable of the script and a parameter of the TypeScript caller. So header, script and caller cannot
 * disagree about positions. In a header, a trailing `?` marks an argument that may be absent, and a trailing `...` the rest of
 * the list. scripts/lua/check.ts refuses a script that contradicts its header.
 *
 * The files in lua/ itself have functions that scripts share. A line `-- functions` in a script, or in a function, stands for
 * those functions that the code behind it uses, up to the end of its block, and for those that these use. The functions that
 * only a block with such a line of its own uses stand there. So a call creates only the functions that its branch needs.
 * The generated module stores the text of each function once, and joins the texts when it is loaded.
 *
 * Kinds of lock may share a folder of scripts. Each has the keys of the headers that it does not lack (scripts/lua/bundle.ts);
 * the names of the others are nil.
 *
 * In the texts that Redis receives, names are short (scripts/lua/short-names.ts). The module begins with a table of them.
 * `Constants` in a header apply to all files, and are replaced by their values. For a single server, the text between
 * `--[[cluster` and `--]]` is a comment; for a cluster, src/redis/scripts.ts enables this text. The texts that Redis
 * receives have no comments, no indentation and no optional spaces.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { modulesOf } from './lua/module.ts'

// Each folder has its own module, so that a program contains only the scripts of the kinds that it uses.
for (const [folder, text] of modulesOf(new URL('../lua/', import.meta.url))) {
  const target = new URL(`../src/kinds/${folder}/scripts.generated.ts`, import.meta.url)
  mkdirSync(new URL('.', target), { recursive: true })
  // An unchanged file is not written, because another process may be reading it.
  if (!existsSync(target) || readFileSync(target, 'utf8') !== text) writeFileSync(target, text)
}
