/**
 * The terminal while the view of `baton top` uses it. The view is on the alternate screen. When the view ends, the
 * terminal shows its previous content again.
 *
 * Clearing and redrawing the whole screen would make it flicker, and would take long over a slow connection. So only
 * the lines that have changed are written, all in one write. A terminal with synchronized output shows all of them at
 * once.
 */
import { constants } from 'node:os'
import { emitKeypressEvents, type Interface, type Key as ReadKey } from 'node:readline'
import type { ReadStream, WriteStream } from 'node:tty'
import ansiEscapes from 'ansi-escapes'
import { onEnding } from '../signals.ts'
import type { Size } from './frame.ts'
import type { Key } from './view.ts'

interface Hearing {
  key(key: Key): void
  /** Called when the whole screen has to be drawn again: its size has changed, or another program has used it. */
  redraw(): void
  /** Called when the program must end, because of the signal with this number, or because its terminal is gone. */
  end(signal: number): void
}

/**
 * An arrow key, for instance, sends several characters, the first of which is an escape. The other characters arrive
 * within this time, in ms, even over a slow connection.
 */
const ESCAPE_WITHIN = 100
/**
 * Turns line wrap off and on. Without wrap, a line stays one line even if the terminal shows it wider than calculated.
 */
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
    // If nothing follows an escape within this time, the user has pressed the Escape key.
    emitKeypressEvents(input, { escapeCodeTimeout: ESCAPE_WITHIN } as unknown as Interface)
    this.#hear(input, 'keypress', (text: string | undefined, key: ReadKey) => hearing.key(keyOf(text, key)))
    this.#hear(output, 'resize', () => {
      this.forget()
      hearing.redraw()
    })
    const hangUp = () => hearing.end(constants.signals.SIGHUP)
    this.#hear(input, 'end', hangUp)
    // These listeners stay after `close`. If the terminal is gone, every later write to it fails, and the error needs a
    // listener.
    for (const stream of [input, output]) stream.on('error', hangUp)
    this.#undo.push(onEnding(name => hearing.end(constants.signals[name])))
    // When a stopped program continues, for instance after Ctrl-Z and `fg`, other output may be on the screen.
    this.#hear(process, 'SIGCONT', () => {
      this.#enter()
      hearing.redraw()
    })
    // However the program ends, the terminal is restored, so that it can show why the program has ended.
    this.#hear(process, 'exit', () => this.#leave())
    this.#hear(process, 'uncaughtExceptionMonitor', () => this.#leave())
    this.#enter()
  }

  /**
   * The size to draw in. The last column of the terminal is left empty, because terminals differ in what they do after
   * a character in that column.
   */
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

  /** Makes the next `draw` write every line. */
  forget(): void {
    this.#drawn = []
  }

  /** Stops the program until its shell continues it, as Ctrl-Z usually does. */
  suspend(): void {
    this.#leave()
    // Stops the whole process group, because a script may have started this program. If only this program stopped, the
    // script would keep running, and the user's shell would not notice the stop.
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
