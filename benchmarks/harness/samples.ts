import { readFile } from 'node:fs/promises'
import { reads, type Sharing, sampleFields } from '../contract.ts'

/** The samples of all workers of a trial, sorted by `acquired`. Each field is a column with one entry per sample. */
export interface Samples {
  readonly length: number
  /** The waiter's number, which is unique across processes. */
  readonly waiter: Int32Array
  readonly process: Int32Array
  readonly key: Int32Array
  /** 1 if the waiter acquired the read lock of a read-write lock. */
  readonly reading: Uint8Array
  /** The number of permits of the semaphore, with or without groups; undefined for other locks. */
  readonly permits: number | undefined
  readonly asked: Float64Array
  readonly acquired: Float64Array
  readonly released: Float64Array
  /** When the release was over. NaN if it rejected, or never ended. */
  readonly done: Float64Array
}

export interface Crowd extends Sharing {
  /** The number of waiters per process. */
  readonly waiters: number
  readonly keys: number
}

const width = sampleFields.length

/** The records in one worker's file. */
export interface Part {
  readonly process: number
  readonly records: Float64Array
}

export function merge(parts: readonly Part[], crowd: Crowd): Samples {
  const { waiters, keys, lock, permits = 1 } = crowd
  const origin: { records: Float64Array; process: number; offset: number; acquired: number }[] = []
  for (const { process, records } of parts) {
    for (let offset = 0; offset < records.length; offset += width) {
      origin.push({ records, process, offset, acquired: records[offset + 2]! })
    }
  }
  origin.sort((a, b) => a.acquired - b.acquired)
  const { length } = origin
  const integers = () => new Int32Array(length)
  const moments = () => new Float64Array(length)
  const samples = {
    length,
    waiter: integers(),
    process: integers(),
    key: integers(),
    reading: new Uint8Array(length),
    permits: lock === 'semaphore' || lock === 'groups' ? permits : undefined,
    asked: moments(),
    acquired: moments(),
    released: moments(),
    done: moments(),
  }
  for (const [i, { records, process, offset }] of origin.entries()) {
    const waiter = records[offset]!
    samples.waiter[i] = process * waiters + waiter
    samples.process[i] = process
    samples.key[i] = waiter % keys
    samples.reading[i] = reads(crowd, waiter) ? 1 : 0
    samples.asked[i] = records[offset + 1]!
    samples.acquired[i] = records[offset + 2]!
    samples.released[i] = records[offset + 3]!
    samples.done[i] = records[offset + 4]!
  }
  return samples
}

export async function readPart(process: number, path: string): Promise<Part> {
  const bytes = await readFile(path)
  // The bytes are copied, because a Float64Array must begin at a multiple of 8 bytes, and a Buffer may begin anywhere.
  const records = new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))
  return { process, records }
}
