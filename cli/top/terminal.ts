/**
 * The terminal while a view has it: on the alternate screen, so that what was there before is there again afterwards.
 *
 * A screen that is cleared and drawn anew flickers, and over a slow line crawls. So only the lines that have changed are
 * written, all of them in one piece, which a terminal that knows of synchronized output shows at once.
 */
import { constants } from 'node:os'
import { emitKeypressEvents, type Interface, type Key as ReadKey } from 'node:readline'
import type { ReadStream, WriteStream } from 'node:tty'
import ansiEscapes from 'ansi-escapes'
import type { Size } from './frame.ts'
import type { Key } from './view.ts'

interface Hearing {
  key(key: Key): void
  /** All of it has to be drawn again: the size is another, or it was somebody else's for a while. */
  redraw(): void
  /** The program is to end, by this signal, or because its terminal is gone. */
  end(signal: number): void
}

const ends = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
/** ms after an escape within which the rest of a key's sequence arrives, also over a slow line. */
const ESCAPE_WITHIN = 100
/** A line that a terminal takes for wider than it was counted must not go on in the next. */
const [noWrap, wrap] = ['\u001b[?7l', '\u001b[?7h']

export class Terminal {
  readonly #input: ReadStream
  readonly #output: WriteStream
  readonly #undo: (() => void)[] = []
  #drawn: readonly string[] = []
  #open = false

  constructor(input: ReadStream, output: WriteStream, hearing: Hearing) {
    this.#input = input
    this.#output = output
    // A lone escape is a key as well, once nothing follows it.
    emitKeypressEvents(input, { escapeCodeTimeout: ESCAPE_WITHIN } as unknown as Interface)
    this.#hear(input, 'keypress', (text: string | undefined, key: ReadKey) => hearing.key(keyOf(text, key)))
    this.#hear(output, 'resize', () => {
      this.forget()
      hearing.redraw()
    })
    const hangUp = () => hearing.end(constants.signals.SIGHUP)
    this.#hear(input, 'end', hangUp)
    // To the very end: what is written to a terminal that is gone fails as well.
    for (const stream of [input, output]) stream.on('error', hangUp)
    for (const name of ends) this.#hear(process, name, () => hearing.end(constants.signals[name]))
    // Continued after Ctrl-Z, or after a stop by somebody else: who knows what is on the screen now.
    this.#hear(process, 'SIGCONT', () => {
      this.#enter()
      hearing.redraw()
    })
    // However this program ends, its terminal can be used afterwards, and shows why.
    this.#hear(process, 'exit', () => this.#leave())
    this.#hear(process, 'uncaughtExceptionMonitor', () => this.#leave())
    this.#enter()
  }

  /** The last column stays free: in it, terminals differ in what comes next. */
  get size(): Size {
    const { columns, rows } = this.#output
    return { columns: Math.max(1, columns - 1), rows: Math.max(1, rows) }
  }

  draw(lines: readonly string[]): void {
    if (!this.#open) return
    const changed = lines.map((line, i) => (line === this.#drawn[i] ? '' : at(i) + line + ansiEscapes.eraseEndLine))
    this.#drawn = lines
    const text = changed.join('')
    if (text !== '') this.#output.write(ansiEscapes.synchronizedOutput(text))
  }

  /** The next drawing draws every line. */
  forget(): void {
    this.#drawn = []
  }

  /** Stops the program until its shell continues it, as Ctrl-Z does elsewhere. */
  suspend(): void {
    this.#leave()
    // With all that a script has started along with it, or the shell would not notice.
    process.kill(0, 'SIGTSTP')
  }

  close(): void {
    for (const undo of this.#undo) undo()
    this.#leave()
    this.#input.pause()
  }

  #enter(): void {
    this.#open = true
    this.forget()
    this.#input.setRawMode(true)
    this.#input.resume()
    this.#output.write(ansiEscapes.enterAlternativeScreen + ansiEscapes.cursorHide + noWrap + ansiEscapes.eraseScreen)
  }

  #leave(): void {
    if (!this.#open) return
    this.#open = false
    this.#input.setRawMode(false)
    this.#output.write(wrap + ansiEscapes.cursorShow + ansiEscapes.exitAlternativeScreen)
  }

  #hear(from: NodeJS.EventEmitter, event: string, listener: (...args: never[]) => void): void {
    from.on(event, listener as (...args: unknown[]) => void)
    this.#undo.push(() => from.off(event, listener as (...args: unknown[]) => void))
  }
}

function at(line: number): string {
  return ansiEscapes.cursorTo(0, line)
}

function keyOf(text: string | undefined, { name = '', ctrl = false, meta = false }: ReadKey): Key {
  const writes = text !== undefined && !ctrl && !meta && !/\p{C}/u.test(text)
  return { name, ctrl, text: writes ? text : '' }
}
