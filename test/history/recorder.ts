/**
 * Appends events to a history that several processes write, and reads the history back.
 *
 * Each event is one write to a file opened for appending. So lines of different processes never mix, and the file has
 * everything that a process recorded before a SIGKILL.
 */
import { closeSync, createReadStream, openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Fields, HistoryEvent, Kind } from './events.ts'

/** Returns monotonic ms, which are comparable between the processes of one machine. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

export class Recorder {
  readonly #file: number

  constructor(path: string) {
    this.#file = openSync(path, 'a')
  }

  /** Records an event. `t` is the time at which it happened; default: now. */
  record<K extends Kind>(kind: K, fields: Fields<K>, t: number = now()): void {
    const line = Buffer.from(`${JSON.stringify({ t, kind, ...fields })}\n`)
    const written = writeSync(this.#file, line)
    if (written !== line.length) throw new Error(`only ${written} of ${line.length} bytes of an event were written`)
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** Returns the events of a history, one at a time, in the order of the file. */
export async function* readEvents(path: string): AsyncGenerator<HistoryEvent> {
  let number = 0
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    number += 1
    if (line === '') continue
    let event: HistoryEvent
    try {
      event = JSON.parse(line)
    } catch (error) {
      throw new Error(`line ${number} of ${path} is not an event: ${line.slice(0, 80)}`, { cause: error })
    }
    yield event
  }
}
