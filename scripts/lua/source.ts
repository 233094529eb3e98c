/** Reads the files of lua/: the headers of the scripts, and their code, with constants replaced by their values. */
import { readdirSync, readFileSync } from 'node:fs'

/** Stands for the functions that the code behind it uses, up to the end of its block. */
export const marker = /^( *)-- functions$/

/** A script, or a function of one of the files in lua/ itself. */
export interface Unit {
  /** The path, which begins with `lua/`, for messages. */
  readonly file: string
  readonly name: string
  /** The code with its indentation, without comments. Constants are replaced by their values. */
  readonly lines: readonly string[]
}

/** The header of a script lists its keys and arguments in their order. */
export interface Script extends Unit {
  readonly keys: readonly Declared[]
  readonly args: readonly Declared[]
  /** The first word of each reply. */
  readonly replies: readonly string[]
}

/** A key or an argument. `?`: it may be absent, which is nil in Lua. `...`: all remaining values of the list. */
export interface Declared {
  readonly name: string
  readonly mark: '' | '?' | '...'
}

interface File {
  readonly file: string
  readonly name: string
  readonly text: string
}

/** Returns the functions of the files in lua/ itself, and the scripts of these folders. */
export function unitsOf(root: URL, folders: readonly string[]) {
  const shared = filesIn(root, '')
  const files = folders.map(folder => filesIn(root, folder))
  const constants = new Map([...shared, ...files.flat()].flatMap(file => listed(file, 'Constants', constant)))
  const used = new Set<string>()
  const codeOf = ({ text }: File) => linesOf(text, constants, used)
  const functions = shared.flatMap(file => functionsOf(file, codeOf(file)))
  const scripts = files.map(each =>
    each.map((file): Script => {
      const { name } = file
      const [keys, args] = [listed(file, 'KEYS', declared), listed(file, 'ARGV', declared)]
      const replies = listed(file, 'Replies', line => line.split(' ', 1)[0]!)
      return { file: file.file, name, lines: codeOf(file), keys, args, replies }
    }),
  )
  for (const name of constants.keys()) if (!used.has(name)) throw new Error(`nobody uses the constant "${name}"`)
  return { functions, scripts }
}

function filesIn(root: URL, folder: string): File[] {
  const at = new URL(folder && `${folder}/`, root)
  const names = readdirSync(at).filter(file => file.endsWith('.lua'))
  return names.sort().map(name => {
    const file = `lua/${folder && `${folder}/`}${name}`
    return { file, name: name.slice(0, -'.lua'.length), text: readFileSync(new URL(name, at), 'utf8') }
  })
}

/** Reads the lines of a header that stand below a title. */
function listed<T>({ file, text }: File, title: string, read: (line: string) => T | undefined): T[] {
  const [, lines = ''] = new RegExp(`^-- ${title}\\n((?:--   .*\\n)*)`, 'm').exec(text) ?? []
  return [...lines.matchAll(/^-- {3,}(.*)$/gm)].map(([, line]) => {
    const found = read(line!)
    if (found === undefined) throw new Error(`${file}: cannot read "${line}"`)
    return found
  })
}

function declared(line: string): Declared | undefined {
  const [, name, mark = ''] = /^(\w+)(\?|\.\.\.)?\s+\S/.exec(line) ?? []
  return name === undefined ? undefined : { name, mark: mark as Declared['mark'] }
}

function constant(line: string): [name: string, value: string] | undefined {
  const [, name, value] = /^([A-Z][A-Z_]*) = ('[^']*'|-?\d+)\s+\S/.exec(line) ?? []
  return name === undefined || value === undefined ? undefined : [name, value]
}

/** Returns the lines of code. Adds the constants that occur to `used`. */
function linesOf(text: string, constants: ReadonlyMap<string, string>, used: Set<string>): string[] {
  const replaced = (word: string) => {
    used.add(word)
    return constants.get(word) ?? word
  }
  return text.split('\n').flatMap(line => {
    if (marker.test(line)) return [line]
    const code = line.replace(/(^|\s)--(\s.*)?$/, '').trimEnd()
    return code ? [outsideStrings(code, part => part.replace(/\b[A-Z][A-Z_]*\b/g, replaced))] : []
  })
}

/** Returns the functions of a file, which has nothing else. One that only a cluster needs stands between its marks. */
function functionsOf({ file }: File, lines: readonly string[]): Unit[] {
  const functions: Unit[] = []
  let open: string[] = []
  for (const [i, line] of lines.entries()) {
    open.push(line)
    const ends = open[0] === '--[[cluster' ? line === '--]]' : line === 'end'
    const name = ends && /^local function (\w+)\(/.exec(open.find(each => !each.startsWith('--')) ?? '')?.[1]
    if (name) {
      functions.push({ file, name, lines: open })
      open = []
    } else if (ends || i === lines.length - 1)
      throw new Error(`${file}: has something else than functions: "${open[0]}"`)
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
