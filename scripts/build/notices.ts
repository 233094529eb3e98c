/** Collects the licences of all packages that are bundled into dist/, as these licences require. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { manifest, root } from './entries.ts'

interface Package {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly text: string
}

/** Writes the notices. `files` are all bundled files, including the project's own. */
export async function writeNotices(files: readonly string[]): Promise<void> {
  const folders = new Set(files.flatMap(folderOf))
  const packages = await Promise.all([...folders].sort().map(read))
  // Packages with the same licence text share one copy of it.
  const texts = [...new Set(packages.map(({ text }) => text))]
  const parts = texts.map(text => {
    const alike = packages.filter(each => each.text === text)
    return [...alike.map(({ name, version, license }) => `${name} ${version} (${license})`), '', text].join('\n')
  })
  const head = `The compiled files of ${manifest.name} contain parts of the following packages.`
  await writeFile(join(root, 'dist/third-party-notices.txt'), `${[head, ...parts].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`)
}

/** Returns the folder of the package that a file belongs to; empty for the project's own files. */
function folderOf(file: string): string[] {
  const parts = file.split(sep)
  const at = parts.lastIndexOf('node_modules') + 1
  if (at === 0) return []
  const length = parts[at]?.startsWith('@') ? 2 : 1
  return [parts.slice(0, at + length).join(sep)]
}

async function read(folder: string): Promise<Package> {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Package
  const file = (await readdir(folder)).find(entry => /^licen[cs]e\b/i.test(entry))
  if (file === undefined || !license) throw new Error(`${name} is bundled and has no licence that could be passed on`)
  return { name, version, license, text: (await readFile(join(folder, file), 'utf8')).trim() }
}
