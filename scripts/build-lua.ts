/**
 * Turns lua/ into src/kinds/scripts.generated.ts, which has the parts of the scripts' texts. src/kinds/scripts.ts joins them.
 *
 * The header of a script is its interface, and the only place that defines the order of KEYS and ARGV. Each name in the
 * header becomes a local variable of the script. A trailing `?` marks an argument that may be absent, and a trailing `...`
 * the rest of the list. All scripts of a folder have the same keys, unless their only key is such a rest.
 *
 * The files in lua/ itself have functions that scripts share. A line `-- functions` in a script, or in a function, stands for
 * those functions that the code behind it uses, up to the end of its block, and for those that these use. The functions that
 * only a block with such a line of its own uses stand there. So a call creates only the functions that its branch needs.
 *
 * In the texts that Redis receives, names are short (scripts/lua/short-names.ts). The module begins with a table of them.
 * `Constants` in a header apply to all files, and are replaced by their values. For a single server, the text between
 * `--[[cluster` and `--]]` is a comment; for a cluster, src/redis/scripts.ts enables this text. The texts that Redis
 * receives have no comments, no indentation and no optional spaces.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { moduleOf } from './lua/bundle.ts'

const target = new URL('../src/kinds/scripts.generated.ts', import.meta.url)
const text = moduleOf(new URL('../lua/', import.meta.url))
// An unchanged file is not written, because another process may be reading it.
if (!existsSync(target) || readFileSync(target, 'utf8') !== text) writeFileSync(target, text)
