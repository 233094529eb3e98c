/** `baton dashboard` prints the files for Grafana and Prometheus that come with the package. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { packageRoot } from '../local-redis/package-root.ts'

export function addDashboard(program: Command): void {
  program
    .command('dashboard')
    .description('prints a dashboard for Grafana, or alerts for Prometheus')
    .option('--alerts', 'the alerts, as a file of rules for Prometheus')
    .addHelpText(
      'after',
      `
Examples:
  baton dashboard >locks.json             # in Grafana: Dashboards, New, Import
  baton dashboard --alerts >locks.yml     # in prometheus.yml: rule_files

Both show the metrics of redis-baton/opentelemetry, as
@opentelemetry/exporter-prometheus names them, by the groups of its option
keyGroup, and those that "baton run --metrics" writes.`,
    )
    .action(({ alerts }: { alerts?: true }) => {
      const file = alerts ? 'alerts.yml' : 'grafana-dashboard.json'
      process.stdout.write(readFileSync(new URL(`examples/prometheus/${file}`, packageRoot), 'utf8'))
    })
}
