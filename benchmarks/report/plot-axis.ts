/**
 * Axes in percent of the plot's width. A drawing in percentages scales with the window without a script, and its text
 * keeps its size.
 */
import { scaleLinear, scaleLog } from 'd3-scale'

export interface Axis {
  /** Returns the position of a value, in percent of the width. */
  at(value: number): number
  readonly ticks: readonly { readonly at: number; readonly text: string }[]
  readonly log: boolean
}

/** If the largest value is at least this many times the smallest, the axis is logarithmic. */
const worthLog = 8
/** Room for the marks at both ends, in percent. */
const edge = 2
/** If a logarithmic axis also shows values of 0, all other values begin at this position, in percent. */
const room = 14

/**
 * Makes an axis for these values: linear from 0, or logarithmic if the largest value is many times the smallest.
 * `force` overrides this choice.
 */
export function axisFor(values: readonly number[], write: (value: number) => string, force?: 'log' | 'linear'): Axis {
  const positive = values.filter(value => value > 0)
  const [least, most] = [Math.min(...positive), Math.max(...positive)]
  if (positive.length === 0) return linear([0, 1], write)
  if (force === 'linear' || (force !== 'log' && most / least < worthLog)) return linear([0, most], write)
  return logarithmic(least, most, write, positive.length < values.length)
}

export function linear(domain: readonly [number, number], write: (value: number) => string, count = 3): Axis {
  const scale = scaleLinear(domain, [edge, 100 - edge]).clamp(true)
  const ticks = scale.ticks(count).map(value => ({ at: scale(value), text: write(value) }))
  return { at: value => scale(value), ticks, log: false }
}

function logarithmic(least: number, most: number, write: (value: number) => string, zero: boolean): Axis {
  const left = zero ? room : edge
  // If all values are equal, the domain is widened, because an axis needs some width.
  const domain = least < most ? [least, most] : [least / 2, most * 2]
  const scale = scaleLog(domain, [left, 100 - edge]).clamp(true)
  const decades = Math.log10(domain[1]! / domain[0]!)
  const mantissas = decades > 2.2 ? [1] : decades > 1.2 ? [1, 3] : [1, 2, 5]
  const ticks = scale
    .ticks()
    .filter(value => mantissas.includes(Number(value.toExponential(0)[0])))
    .map(value => ({ at: scale(value), text: write(value) }))
  // If there are many ticks, only every second one has a label: all labels would not fit on a phone.
  const labelled = ticks.length > 5 ? ticks.filter((_, i) => i % 2 === 0) : ticks
  return {
    at: value => (value > 0 ? scale(value) : edge),
    ticks: zero ? [{ at: edge, text: write(0) }, ...labelled] : labelled,
    log: true,
  }
}

/** Formats a position with two decimals, which are finer than a pixel and give the same text on every machine. */
export const percent = (at: number): string => `${Math.round(at * 100) / 100}%`
