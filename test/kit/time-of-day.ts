/** The time of day of this process, made movable. To be imported before anything that might read it. */
const TrueDate = Date
let offset = 0

globalThis.Date = class extends TrueDate {
  constructor(...args: [number?]) {
    super(...((args.length > 0 ? args : [TrueDate.now() + offset]) as [number]))
  }
  static override now = () => TrueDate.now() + offset
} as DateConstructor

/** Moves it by this many ms; returns what it is then. */
export function jump(ms: number): number {
  offset += ms
  return Date.now()
}
