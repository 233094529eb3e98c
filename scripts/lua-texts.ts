/**
 * Writes the scripts of lua/ into a folder as Redis receives them, with their functions: for redis-cli, and for clients
 * in other languages. `npx tsx scripts/lua-texts.ts <folder>`
 *
 * The texts are those that a client with the default `prefix` and `tokenMemory` sends to a single server. A cluster
 * receives the same texts, but with the parts between `--[[cluster` and `--]]`, and with SPUBLISH instead of PUBLISH.
 * Variables have short names in these texts. src/kinds/scripts.generated.ts begins with a table of these names.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { usualTexts } from './lua/usual-texts.ts'

const [folder] = process.argv.slice(2)
if (folder === undefined) {
  console.error('usage: npx tsx scripts/lua-texts.ts <folder>')
  process.exit(64)
}
mkdirSync(folder, { recursive: true })
for (const [name, lua] of Object.entries<string>(usualTexts)) {
  const file = `${name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}.lua`
  // Writes no final newline, so that the file's SHA1 is the one that MONITOR shows.
  writeFileSync(join(folder, file), lua)
}
console.log(`${Object.keys(usualTexts).length} scripts are in ${folder}`)
