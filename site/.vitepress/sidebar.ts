/** The pages in the order in which somebody who is new to all of it would read them. */
import { existsSync, readFileSync } from 'node:fs'
import type { DefaultTheme } from 'vitepress'

type Item = DefaultTheme.SidebarItem

const page = (text: string, link: string): Item => ({ text, link })

/** Written by TypeDoc, which runs before. */
const reference = new URL('../reference/typedoc-sidebar.json', import.meta.url)

export function sidebar(): Item[] {
  return [
    {
      text: 'Begin',
      items: [
        page('At a glance', '/overview'),
        page('Getting started', '/guide/getting-started'),
        page('Play with a lock', '/play'),
        page('Choosing a lock', '/guide/choosing'),
        page('Testing your program', '/guide/testing-your-program'),
        page('redis-baton or …', '/guide/alternatives'),
        {
          ...page('Migrating', '/guide/migrating'),
          collapsed: true,
          items: [
            page('From redlock', '/guide/migrating-from-redlock'),
            page('From redis-semaphore', '/guide/migrating-from-redis-semaphore'),
            page('From Redisson', '/guide/migrating-from-redisson'),
          ],
        },
        page('From a shell', '/guide/shell'),
        page('Jobs: cron, systemd, Kubernetes', '/guide/jobs'),
        page('Serverless functions', '/guide/serverless'),
        page('Examples', '/examples/'),
        page('Prometheus and Grafana', '/examples/prometheus/'),
        page('A quorum of five', '/examples/quorum/'),
      ],
    },
    {
      text: 'Use',
      items: [
        page('Re-entry', '/guide/re-entry'),
        page('Fencing', '/guide/fencing'),
        page('Options', '/guide/options'),
        page('Errors', '/guide/errors'),
        page('NestJS', '/guide/nestjs'),
        page('Tuning', '/guide/tuning'),
        page('Observability', '/guide/observability'),
      ],
    },
    {
      text: 'Run',
      items: [
        page('Servers', '/guide/servers'),
        page('Cluster', '/guide/cluster'),
        page('A quorum', '/guide/quorum'),
        page('Operations', '/guide/operations'),
        page('Scale', '/guide/scale'),
        page('Security', '/project/SECURITY'),
      ],
    },
    {
      text: 'Judge',
      items: [
        page('Guarantees', '/guide/guarantees'),
        page('Versions', '/guide/versions'),
        page('Benchmarks', '/guide/benchmarks'),
        page('How they are run', '/benchmarks/'),
      ],
    },
    { text: 'Reference', items: referenceItems() },
    {
      text: 'Inside',
      collapsed: true,
      items: [
        page('The life of a request', '/guide/life-of-a-request'),
        page('The map of the house', '/src/'),
        page('The protocol', '/guide/protocol'),
        page('A lock in Redis', '/lua/'),
        page('The model', '/guide/model'),
        page('Testing', '/guide/testing'),
        { ...page('Decisions', '/decisions/'), collapsed: true, items: decisions() },
        page('Contributing', '/project/CONTRIBUTING'),
        page('Code of conduct', '/project/CODE_OF_CONDUCT'),
        page('Changelog', '/project/CHANGELOG'),
      ],
    },
  ]
}

function referenceItems(): Item[] {
  if (!existsSync(reference)) throw new Error('TypeDoc has not written the reference: run `npm run site`')
  return JSON.parse(readFileSync(reference, 'utf8')) as Item[]
}

/** As the list of decisions has them, without their numbers. */
function decisions(): Item[] {
  const list = readFileSync(new URL('../../docs/decisions/README.md', import.meta.url), 'utf8')
  return [...list.matchAll(/^\d+\. \[(.+)\]\((.+)\.md\)$/gm)].map(([, text, name]) => page(text!, `/decisions/${name}`))
}
