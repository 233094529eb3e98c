/** Types for the part of the package that the tests use. The package itself has no types. */
declare module 'parse-prometheus-text-format' {
  export interface Family {
    readonly name: string
    readonly type: string
    readonly help: string
    readonly metrics: readonly {
      readonly value?: string
      readonly labels?: Readonly<Record<string, string>>
      /** Only for a histogram: the count of each bucket, by the bucket's upper bound. */
      readonly buckets?: Readonly<Record<string, string>>
      readonly count?: string
      readonly sum?: string
    }[]
  }
  export default function parse(text: string): Family[]
}
