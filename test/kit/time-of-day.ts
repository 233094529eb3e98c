/** Lets a test move this process's time of day. Import it before any module that might read the time. */
const TrueDate = Date
let offset = 0

globalThis.Date = class extends TrueDate {
  constructor(...args: [number?]) {
    super(...((args.length > 0 ? args : [TrueDate.now() + offset]) as [number]))
  }
  static override now = () => TrueDate.now() + offset
} as DateConstructor

/** Moves the time by `ms`, and returns the new time. */
export function jump(ms: number): number {
  offset += ms
  return Date.now()
}
