/** Runs steps one after another. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()

  inTurn<T>(step: () => Promise<T>): Promise<T> {
    const done = this.#last.then(step)
    this.#last = done
    return done
  }
}
