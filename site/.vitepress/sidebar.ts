/** The pages in the order in which somebody who is new to all of it would read them. */
import { existsSync, readFileSync } from 'node:fs'
import type { DefaultTheme } from 'vitepress'

type Item = DefaultTheme.SidebarItem

const page = (text: string, link: string): Item => ({ text, link })

/** Written by TypeDoc, which runs before. */
const reference = new URL('../reference/typedoc-sidebar.json', import.meta.url)

/** The pages for users, and, in a part of their own, those from inside: the longest path that fits counts. */
export function sidebar(): DefaultTheme.SidebarMulti {
  return { '/': forUsers(), '/inside/': fromInside() }
}

function forUsers(): Item[] {
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
        page('Options', '/guide/options'),
        page('Errors', '/guide/errors'),
        page('Re-entry', '/guide/re-entry'),
        page('Fencing', '/guide/fencing'),
        page('NestJS', '/guide/nestjs'),
        page('Observability', '/guide/observability'),
      ],
    },
    {
      text: 'Run',
      items: [
        page('A job waits', '/guide/a-job-waits'),
        page('Operations', '/guide/operations'),
        page('Servers', '/guide/servers'),
        page('Cluster', '/guide/cluster'),
        page('A quorum', '/guide/quorum'),
        page('Security', '/guide/SECURITY'),
      ],
    },
    {
      text: 'Judge',
      items: [
        page('Guarantees', '/guide/guarantees'),
        page('Faults', '/guide/faults'),
        page('Benchmarks', '/guide/benchmarks'),
        page('Versions', '/guide/versions'),
      ],
    },
    { text: 'Reference', items: referenceItems() },
  ]
}

function fromInside(): Item[] {
  return [
    {
      text: 'Inside',
      items: [
        page('The life of a request', '/inside/life-of-a-request'),
        page('The map of the house', '/inside/src/'),
        page('A quorum, from inside', '/inside/src/compose/quorum/'),
        page('The protocol', '/inside/protocol'),
        page('A lock in Redis', '/inside/lua/'),
        page('The model', '/inside/model'),
        page('Testing', '/inside/testing'),
        page('Benchmarks', '/inside/benchmarks/'),
        { ...page('Decisions', '/inside/decisions/'), collapsed: true, items: decisions() },
      ],
    },
    {
      text: 'Project',
      items: [
        page('Contributing', '/inside/CONTRIBUTING'),
        page('Code of conduct', '/inside/CODE_OF_CONDUCT'),
        page('Changelog', '/inside/CHANGELOG'),
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
  return [...list.matchAll(/^\d+\. \[(.+)\]\((.+)\.md\)$/gm)].map(([, text, name]) =>
    page(text!, `/inside/decisions/${name}`),
  )
}
