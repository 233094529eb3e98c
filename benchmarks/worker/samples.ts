import { writeFile } from 'node:fs/promises'
import { sampleFields } from '../contract.ts'

const width = sampleFields.length
const firstCapacity = 1 << 16

/**
 * The samples of one order. All samples are in one flat array, and the file gets the bytes of this array. No objects
 * are created per sample. When the array is full, it is copied into an array of twice the size. This takes about 1 ms
 * at 100,000 samples.
 */
export class SampleStore {
  count = 0
  #numbers = new Float64Array(firstCapacity * width)

  /**
   * Adds a sample when release is called, and returns the sample's number. `finish` adds `done`, which is NaN until
   * then.
   */
  add(waiter: number, asked: number, acquired: number, released: number): number {
    const offset = this.count * width
    if (offset === this.#numbers.length) {
      const larger = new Float64Array(this.#numbers.length * 2)
      larger.set(this.#numbers)
      this.#numbers = larger
    }
    const numbers = this.#numbers
    numbers[offset] = waiter
    numbers[offset + 1] = asked
    numbers[offset + 2] = acquired
    numbers[offset + 3] = released
    numbers[offset + 4] = Number.NaN
    return this.count++
  }

  finish(sample: number, done: number): void {
    this.#numbers[sample * width + 4] = done
  }

  /** Writes the samples so far and returns their number. More samples may be added while the file is written. */
  async write(file: string): Promise<number> {
    const { count } = this
    await writeFile(file, this.#numbers.slice(0, count * width))
    return count
  }
}
