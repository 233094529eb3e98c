/**
 * Writes the scripts of lua/ as Redis is sent them, with their includes, into a folder: for redis-cli, and for clients in
 * other languages. `npx tsx scripts/lua-texts.ts <folder>`
 *
 * They are those for a single server, of a client with the default `prefix` and `tokenMemory`. A cluster is sent the same texts, but with what stands between `--[[cluster` and
 * `--]]`, and SPUBLISH in place of PUBLISH. src/kinds/mutex/scripts.generated.ts begins with what the short names stand for.
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
for (const [name, lua] of Object.entries(usualTexts)) {
  const file = `${name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}.lua`
  // Without a line more, so that its SHA1 is the one that MONITOR shows.
  writeFileSync(join(folder, file), lua)
}
console.log(`${Object.keys(usualTexts).length} scripts are in ${folder}`)
