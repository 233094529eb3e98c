/**
 * Tests the alerts, the dashboard and the worker in examples/prometheus. The expressions of the alerts and of the
 * dashboard are parsed with Prometheus' own grammar. A running worker must serve every metric and label in these
 * expressions, or a run of `baton run --metrics` must write it.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parser } from '@prometheus-io/lezer-promql'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { freePort } from '../../../local-redis/port.ts'
import { example, Running, runNode } from '../../kit/program.ts'
import { freshKey, redisUrl } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { eventually } from '../../kit/time.ts'

const root = new URL('../../../', import.meta.url)
const folder = new URL('examples/prometheus/', root)

interface Panel {
  readonly id: number
  readonly title: string
  readonly datasource: { readonly uid: string }
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets: readonly {
    readonly expr: string
    readonly refId: string
    readonly datasource: { readonly uid: string }
  }[]
}

interface Dashboard {
  readonly title: string
  readonly schemaVersion: number
  readonly panels: readonly Panel[]
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly query: unknown }[]
  }
}

interface Alerts {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[]
}

const dashboard: Dashboard = JSON.parse(await readFile(new URL('grafana-dashboard.json', folder), 'utf8'))
const alerts: Alerts = parse(await readFile(new URL('alerts.yml', folder), 'utf8'))

/** All expressions, each with its place in the files. */
const expressions = [
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
  ...alerts.groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => [alert, expr] as const)),
]

/**
 * Returns the metrics and labels that an expression asks for. Grafana's own variables are first replaced, as Grafana
 * would do.
 */
function asked(expression: string): { metrics: string[]; labels: string[]; wrong: string[] } {
  const text = expression.replace(/\$__(?:rate_interval|range)\b/g, '5m')
  const [metrics, labels, wrong]: [string[], string[], string[]] = [[], [], []]
  parser.parse(text).iterate({
    enter({ type, from, to, node }) {
      const part = text.slice(from, to)
      if (type.isError) wrong.push(text.slice(Math.max(0, from - 20), to + 20))
      else if (type.name === 'LabelName') labels.push(part)
      else if (type.name === 'Identifier' && node.parent?.name === 'VectorSelector') metrics.push(part)
    },
  })
  return { metrics, labels, wrong }
}

/** The labels that Prometheus adds to each series that it scrapes. */
const added = ['job', 'instance']

/** Returns what a program of this project prints. */
async function baton(...args: string[]): Promise<string> {
  return (await runNode(['--import', 'tsx', 'cli/main.ts', ...args], { cwd: fileURLToPath(root) })).output
}

/** Returns the metrics and labels that are in the expressions, but are not served. */
function missing(served: string): string[] {
  const series = [...served.matchAll(/^([a-zA-Z_:][\w:]*)(\{.*\})? /gm)]
  const names = new Set(series.map(([, name]) => name))
  const labels = new Set(series.flatMap(([, , all = '']) => [...all.matchAll(/(\w+)="/g)].map(([, label]) => label)))
  return expressions.flatMap(([where, expression]) => {
    const wanted = asked(expression)
    return [
      ...wanted.metrics.filter(name => !names.has(name)),
      ...wanted.labels.filter(label => !labels.has(label) && !added.includes(label)),
    ].map(name => `${name} (${where})`)
  })
}

describe('the worker', () => {
  test('serves every metric and label that the dashboard and the alerts ask for, and stops on request', async () => {
    const port = await freePort()
    const worker = new Running(example('prometheus/worker.ts'), { REDIS_URL: redisUrl(), METRICS_PORT: String(port) })
    onTestFinished(() => worker.end('SIGKILL').then(() => {}))
    await worker.line(/^metrics on /)
    const file = join(await emptyFolder(), 'job.prom')
    await baton('run', freshKey(), '--url', redisUrl(), '--metrics', file, '--', 'true')
    const written = await readFile(file, 'utf8')
    const scrape = async () => (await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()) + written

    const absent = await eventually(async () => {
      const served = await scrape()
      // The metric of hand-offs is the last one to appear, because it needs a release while a caller waits.
      return served.includes('redis_baton_handoff_duration_bucket') && missing(served)
    }, 10_000)
    expect(absent).toEqual([])

    const served = await scrape()
    for (const renamed of new Set(expressions.flatMap(([, expression]) => asked(expression).metrics))) {
      expect(missing(served.replaceAll(new RegExp(`^${renamed}\\b`, 'gm'), 'another_name'))).toContainEqual(
        expect.stringMatching(`^${renamed} `),
      )
    }
    expect(await worker.end('SIGTERM')).toBe(0)
    expect(worker.lines.at(-1)).toBe('stopped')
  }, 70_000)
})

describe('the expressions', () => {
  test.each(expressions)('%s: %s', (_, expression) => {
    const { metrics, wrong } = asked(expression)
    expect(wrong).toEqual([])
    expect(metrics.length).toBeGreaterThan(0)
    for (const metric of metrics) expect(metric).toMatch(/^(redis_baton|baton_run)_/)
  })

  test('invalid PromQL is noticed', () => {
    expect(asked('sum by (le (rate(redis_baton_waiters[5m]))').wrong).not.toEqual([])
  })

  test('cover lost leases, waits that are too long, a standstill, and a job that no longer succeeds', () => {
    const names = alerts.groups.flatMap(({ rules }) => rules.map(({ alert }) => alert))
    expect(names).toEqual(
      expect.arrayContaining(['LockLeaseLost', 'LockWaitsTooLong', 'LockNobodyProgresses', 'CommandNotSucceeded']),
    )
  })

  test('prometheus.yml names the file of the alerts', async () => {
    const { rule_files } = parse(await readFile(new URL('prometheus.yml', folder), 'utf8'))
    expect(rule_files).toEqual(['alerts.yml'])
  })
})

test('baton dashboard prints the files', async () => {
  expect(JSON.parse(await baton('dashboard'))).toEqual(dashboard)
  expect(parse(await baton('dashboard', '--alerts'))).toEqual(alerts)
})

describe('the dashboard', () => {
  test('shows groups of keys, in every panel of locks, and each alert about locks is of one', () => {
    const without = expressions.filter(([, expression]) => !asked(expression).labels.includes('redis_baton_key_group'))
    expect(without.map(([where]) => where)).toEqual([
      'Disconnections',
      'Renewals and disconnections',
      'baton run: since the last success',
      'baton run: how long the command ran',
      'LockRedisUnsteady',
      'CommandNotSucceeded',
      'CommandFailed',
    ])
  })
})
