/** Reads the files of lua/: what each declares, and its code, with constants replaced by their values. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import luaparse from 'luaparse'
import { type Header, headerOf } from './header.ts'

export interface Source {
  /** The path, which begins with `lua/`, for messages. */
  readonly file: string
  readonly name: string
  /** Whether the file is an include rather than a script. */
  readonly isInclude: boolean
  readonly header: Header
  /** The code without comments and indentation. */
  readonly lines: readonly Line[]
}

/** A line of a file: its code, or the include that the line names. */
export type Line = string | Inclusion

export interface Inclusion {
  readonly source: Source
  /** For each name that is passed to the include, the Lua expression of its value. */
  readonly bound: Map<string, string>
}

const shared = 'shared/'

/** Returns the code for a cluster or for a single server, with each include replaced by `shown`. */
export function codeOf(lines: readonly Line[], cluster: boolean, shown: (inclusion: Inclusion) => string): string {
  const text = lines.map(line => (typeof line === 'string' ? line : shown(line))).join('\n')
  return text.replace(/^--\[\[cluster$([\s\S]*?)^--\]\]$/gm, cluster ? '$1' : '')
}

export class Sources {
  readonly scripts: readonly Source[]
  /** An include comes after the includes that it uses itself. */
  readonly includes: readonly Source[]
  /**
   * Declarations that no script of this kind uses. An unused declaration is an error only if all kinds leave it unused.
   */
  readonly unused: readonly string[]
  readonly #root: URL
  readonly #headers = new Map<string, Header>()
  readonly #constants = new Map<string, string>()
  readonly #used = new Set<string>()
  readonly #paths = new Map<string, string>()
  /** The includes read so far, by name; undefined while an include is being read. */
  readonly #read = new Map<string, Source | undefined>()

  /**
   * Reads the scripts of a kind, and what they include. `kind` is the name of the folder with the scripts. If several
   * kinds have the same scripts, `kind` is `folder/variant`. Then the scripts are in `folder/`, and the includes in
   * which these kinds differ are in `folder/variant/`. Includes for all kinds are in `shared/`. Each folder below
   * replaces the includes of the same name in the folders above it, and `shared/` is above all of them.
   */
  constructor(root: URL, kind: string) {
    this.#root = root
    const [folder, ...variants] = kind.split('/') as [string, ...string[]]
    const scripts = this.#namesIn(`${folder}/`)
    const own = variants.flatMap((_, i) => this.#namesIn(`${[folder, ...variants.slice(0, i + 1)].join('/')}/`))
    for (const path of [...this.#namesIn(shared), ...own]) this.#paths.set(path.slice(path.lastIndexOf('/') + 1), path)
    const includes = [...this.#paths.values()]
    for (const path of [...scripts, ...includes]) this.#headers.set(path, this.#headerOf(path))
    this.scripts = scripts.map(path => this.#sourceOf(path, path.slice(folder.length + 1), false))
    this.includes = [...this.#read.values()].filter(source => source !== undefined)
    this.unused = [...this.#headers].flatMap(([path, { constants }]) => [
      ...(includes.includes(path) && !this.#read.has(path.slice(path.lastIndexOf('/') + 1))
        ? [problem(path, 'nobody includes it')]
        : []),
      ...[...constants.keys()]
        .filter(name => !this.#used.has(name))
        .map(name => problem(path, `nobody uses the constant "${name}"`)),
    ])
  }

  #namesIn(folder: string): string[] {
    const path = new URL(folder, this.#root)
    if (!existsSync(path)) return []
    const files = readdirSync(path).filter(file => file.endsWith('.lua'))
    return files.map(file => folder + file.slice(0, -'.lua'.length)).sort()
  }

  #text(path: string): string {
    return readFileSync(new URL(`${path}.lua`, this.#root), 'utf8')
  }

  #headerOf(path: string): Header {
    const header = tried(path, () => headerOf(this.#text(path)))
    for (const [name, value] of header.constants) {
      if (this.#constants.has(name)) fail(path, `the constant "${name}" has a value already`)
      this.#constants.set(name, value)
    }
    return header
  }

  #sourceOf(path: string, name: string, isInclude: boolean): Source {
    const lines = this.#text(path)
      .split('\n')
      .flatMap((line): Line[] => {
        const [, included, bound] = /^\s*-- include: (\S+)(?: (\{.*\}))?$/.exec(line) ?? []
        if (included !== undefined) return [this.#inclusion(path, included, bound)]
        const code = line.replace(/(^|\s)--(\s.*)?$/, '').trim()
        return code ? [this.#withConstants(code)] : []
      })
    return { file: `lua/${path}.lua`, name, isInclude, header: this.#headers.get(path)!, lines }
  }

  #inclusion(by: string, name: string, table?: string): Inclusion {
    const source = this.#include(by, name)
    const bound = this.#bound(by, table)
    // Kinds with the same scripts may have different includes of the same name, which take different names. The script
    // passes every name that at least one of these includes takes. Here, the names that the include of this kind does
    // not take are removed.
    const differs = !this.#paths.get(name)!.startsWith(shared)
    for (const each of differs ? [...bound.keys()] : []) {
      if (!source.header.takes.some(taken => taken.name === each)) bound.delete(each)
    }
    return { source, bound }
  }

  #include(by: string, name: string): Source {
    const known = this.#read.get(name)
    if (known) return known
    if (this.#read.has(name)) fail(by, `"${name}" includes itself`)
    const path = this.#paths.get(name) ?? fail(by, `there is no include "${name}"`)
    this.#read.set(name, undefined)
    const source = this.#sourceOf(path, name, true)
    // Puts the include behind the includes that it uses, which are in the map by now.
    this.#read.delete(name)
    this.#read.set(name, source)
    return source
  }

  /** Parses `{ name = expression, … }`. */
  #bound(path: string, table = '{}'): Map<string, string> {
    const text = `f${this.#withConstants(table)}`
    const { body } = tried(path, () => luaparse.parse(text, { luaVersion: '5.1', ranges: true }))
    const call = (body[0] as luaparse.CallStatement).expression as luaparse.TableCallExpression
    const { fields } = call.arguments as unknown as luaparse.TableConstructorExpression
    return new Map(
      fields.map(field => {
        if (field.type !== 'TableKeyString') return fail(path, `an include is given names: ${table}`)
        const { range } = field.value as unknown as { range: [number, number] }
        return [field.key.name, text.slice(...range)]
      }),
    )
  }

  #withConstants(code: string): string {
    const replaced = (word: string) => {
      const value = this.#constants.get(word)
      if (value === undefined) return word
      this.#used.add(word)
      return value
    }
    return outsideStrings(code, part => part.replace(/\b[A-Z][A-Z_]*\b/g, replaced))
  }
}

/** Parses an expression. */
export function valueIn(text: string): luaparse.Expression {
  const { body } = luaparse.parse(`return ${text}`, { luaVersion: '5.1' })
  return (body[0] as luaparse.ReturnStatement).arguments[0]!
}

/** Applies a change to everything in a line of code except its strings. */
export function outsideStrings(code: string, change: (part: string) => string): string {
  return code
    .split(/('[^']*')/)
    .map((part, i) => (i % 2 === 0 ? change(part) : part))
    .join('')
}

export function fail(path: string, what: string): never {
  throw new Error(problem(path, what))
}

function problem(path: string, what: string): string {
  return `lua/${path}.lua: ${what}`
}

function tried<T>(path: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    return fail(path, (error as Error).message)
  }
}
