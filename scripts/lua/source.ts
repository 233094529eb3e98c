/** Reads the files of lua/: their headers, and their code, with constants replaced by their values. */
import { readdirSync, readFileSync } from 'node:fs'
import { type Header, headerOf } from './header.ts'

/** Stands for the functions that the code behind it uses, up to the end of its block. */
export const marker = /^( *)-- functions$/
/** A name in code, unless it is a field. */
export const reading = /(?<![.:\w])[A-Za-z_]\w*/g

/** A script, or a function of one of the files in lua/ itself. */
export interface Unit {
  /** The path, which begins with `lua/`, for messages. */
  readonly file: string
  readonly name: string
  /** The code with its indentation, without comments. Constants are replaced by their values. */
  readonly lines: readonly string[]
}

export interface File {
  readonly file: string
  readonly name: string
  readonly text: string
  readonly header: Header
}

export function filesIn(root: URL, folder: string): File[] {
  const at = new URL(folder && `${folder}/`, root)
  const files = readdirSync(at).filter(file => file.endsWith('.lua'))
  return files.sort().map(name => {
    const [file, text] = [`lua/${folder && `${folder}/`}${name}`, readFileSync(new URL(name, at), 'utf8')]
    return { file, name: name.slice(0, -'.lua'.length), text, header: told(file, () => headerOf(text)) }
  })
}

export function codeOf({ text }: File, constants: ReadonlyMap<string, string>): string[] {
  const replaced = (word: string) => constants.get(word) ?? word
  return text.split('\n').flatMap(line => {
    if (marker.test(line)) return [line]
    const code = line.replace(/(^|\s)--(\s.*)?$/, '').trimEnd()
    return code ? [outsideStrings(code, part => part.replace(/\b[A-Z][A-Z_]*\b/g, replaced))] : []
  })
}

/** Returns the functions of a file, which has nothing else. One that only a cluster needs stands between its marks. */
export function functionsOf(file: File, constants: ReadonlyMap<string, string>): Unit[] {
  const functions: Unit[] = []
  let open: string[] = []
  const lines = codeOf(file, constants)
  for (const [i, line] of lines.entries()) {
    open.push(line)
    const ends = open[0] === '--[[cluster' ? line === '--]]' : line === 'end'
    const name = ends && /^local function (\w+)\(/.exec(open.find(each => !each.startsWith('--')) ?? '')?.[1]
    if (name) {
      functions.push({ file: file.file, name, lines: open })
      open = []
    } else if (ends || i === lines.length - 1) {
      throw new Error(`${file.file}: has something else than functions: "${open[0]}"`)
    }
  }
  return functions
}

/** Applies a change to everything in a line of code except its strings. */
export function outsideStrings(code: string, change: (part: string) => string): string {
  return code
    .split(/('[^']*')/)
    .map((part, i) => (i % 2 === 0 ? change(part) : part))
    .join('')
}

/** Refuses a local with the name of a function: the function would be taken for used, and could not be. */
export function refuseHidden({ file, lines }: Unit, functions: readonly Unit[]): void {
  const code = lines.map(line => line.replace(/^local function \w+\(/, '(')).join('\n')
  const declared = code.matchAll(/(?:\blocal (?:function )?|\bfor |\bfunction \w*\(|^\()([\w, ]+)/gm)
  const names = [...declared].flatMap(([, list]) => list!.replace(/ in .*/, '').split(/, */))
  const keys = [...code.matchAll(/[{,] *(\w+) =/g)].map(([, name]) => name!)
  const hidden = functions.find(({ name }) => names.includes(name) || keys.includes(name))
  if (hidden) throw new Error(`${file}: "${hidden.name}" is a function of ${hidden.file}`)
}

export function refuseUnused(
  every: readonly Unit[],
  functions: readonly Unit[],
  constants: ReadonlyMap<string, string>,
  files: readonly File[],
): void {
  const words = new Map<string, number>()
  for (const { lines } of every)
    for (const [word] of lines.join('\n').matchAll(reading)) words.set(word, (words.get(word) ?? 0) + 1)
  for (const { file, name } of functions) if (words.get(name) === 1) throw new Error(`${file}: nobody uses "${name}"`)
  const texts = files.map(({ text }) => text.replace(/^--.*$/gm, '')).join('\n')
  for (const name of constants.keys())
    if (!new RegExp(`\\b${name}\\b`).test(texts)) throw new Error(`nobody uses the constant "${name}"`)
}

/** Runs an action, whose errors then name the file. */
export function told<T>(file: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw new Error(`${file}: ${(error as Error).message}`)
  }
}
