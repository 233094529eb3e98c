/**
 * The code blocks of the documentation that the tests do not run, each with the reason. All other blocks are run. If an
 * entry no longer matches a block, a test fails, so these lists stay up to date.
 */

interface Declared {
  readonly page: string
  /** The first characters of the block to which this entry applies. */
  readonly begins: string
  readonly reason: string
}

/** Blocks whose types are checked, but which are not executed. */
export const typesOnly: readonly Declared[] = [
  {
    page: 'docs/cluster.md',
    begins: 'const locks = new LockClient(new Cluster',
    reason: 'needs a cluster; the contract runs over one in vitest.topologies.config.ts',
  },
  {
    page: 'docs/operations.md',
    begins: 'new LockClient({ sentinels',
    reason: 'needs sentinels; the contract runs over them in vitest.topologies.config.ts',
  },
  {
    page: 'docs/operations.md',
    begins: 'new LockClient({ host, port, tls',
    reason: 'needs a server with certificates; the contract runs over one in vitest.topologies.config.ts',
  },
]

/** Blocks that are neither checked nor executed. */
export const notRun: readonly Declared[] = [
  ...[
    "import { Injectable, Module } from '@nestjs/common'\nimport { LockClient }",
    "import { Injectable, Module } from '@nestjs/common'\nimport { getLocksToken",
  ].map(begins => ({
    page: 'docs/nestjs.md',
    begins,
    reason: 'needs the older decorators; test/docs/package/nestjs compiles it with each version of Nest',
  })),
  ...[
    ...[
      'charge.ts',
      'charge.test.ts',
      'charge.jest.test.ts',
      'redis.setup.ts',
      'vitest.config.ts',
      'charge.redis.test.ts',
    ],
    ...['redis.jest.setup.ts', 'redis.jest.teardown.ts', 'jest.config.cjs', 'charge.redis.jest.test.ts'],
    ...['charges.nest.ts', 'charges.nest.test.ts'],
  ].map(file => ({
    page: 'docs/testing-your-program.md',
    begins: `// ${file}\n`,
    reason: 'is a file for a test runner; test/docs/testing-your-program.test.ts compiles it, and runs it if it can',
  })),
  {
    page: 'docs/migrating-from-redisson.md',
    begins: 'RLock lock = redisson.getLock',
    reason: 'Java, and what is left behind; benchmarks/redisson compiles the same calls',
  },
]

interface Elsewhere {
  /** A line of a shell block, without the comment at its end. */
  readonly command: string
  readonly reason: string
  /** A file that runs the command, or is run by it. A test checks that the file contains each of `texts`. */
  readonly file: string
  readonly texts: readonly string[]
}

/** Commands in shell blocks that the tests of the documentation do not run. The other lines of these blocks are run. */
export const elsewhere: readonly Elsewhere[] = [
  ...[
    { command: 'npm ci && npm test', texts: ['(npm ci && npm test)'] },
    { command: 'npm ci && npm run test:unit', texts: ['(npm ci && npm test)'] },
    { command: 'npm ci && npm run build', texts: ['(npm ci && npm test)'] },
    { command: 'npm ci && npm run demo', texts: ['(npm ci && npm test)', 'unused demo; do'] },
  ].map(({ command, texts }) => ({ command, reason: 'every run of CI begins with it', file: '.ci/run', texts })),
  ...['npm run lint', 'npm run typecheck'].map(command => ({
    command,
    reason: 'every run of CI does both',
    file: '.ci/run',
    texts: ['for check in lint typecheck; do'],
  })),
  {
    command: 'npm install redis-baton',
    reason: 'would install what is published; the test installs what would be',
    file: 'test/docs/package/installed.test.ts',
    texts: [`'install'`, 'tarball'],
  },
  {
    command: 'docker run --rm --detach --publish 127.0.0.1:6379:6379 redis:8',
    reason: 'would fetch an image; the matrix runs the contract on this image',
    file: '.github/workflows/ci.yml',
    texts: ['redis:8'],
  },
  ...[
    ['npx tsx examples/scoped-use.ts', 'test/docs/examples/examples.test.ts', `'scoped-use.ts'`],
    ['PORT=8080 npx tsx examples/express.ts', 'test/docs/examples/express.test.ts', 'express.ts'],
    ['npx tsx scripts/lua-texts.ts lua-texts', 'test/lua/lua-texts.test.ts', 'scripts/lua-texts.ts'],
    ['node --import tsx examples/prometheus/worker.ts', 'test/docs/examples/prometheus.test.ts', 'worker.ts'],
    ['node --import tsx examples/quorum/worker.ts', 'test/docs/examples/quorum.test.ts', 'worker.ts'],
  ].map(([command = '', file = '', text = '']) => ({ command, reason: 'has a test of its own', file, texts: [text] })),
  {
    command: 'docker compose -f examples/quorum/compose.yaml up -d',
    reason: 'would fetch images; the test starts the same servers by the commands of that file',
    file: 'test/docs/examples/quorum.test.ts',
    texts: ['compose.yaml'],
  },
  {
    command: 'prometheus --config.file=examples/prometheus/prometheus.yml',
    reason: 'Prometheus is no package of npm; the test compares what its files ask for with what is served',
    file: 'test/docs/examples/prometheus.test.ts',
    texts: ['alerts.yml'],
  },
  ...[
    'npx baton bench',
    'npx baton bench --all',
    'npx baton bench --scenario 2x8-hold5 --rounds 1',
    'npx baton bench --scenario 2x8,2x100 --rival baton-fair,redis-semaphore,floor-publish',
    'npx baton bench --all --rounds 5 --seconds 5 --json results.json --html results.html',
    'npx baton bench --rtt 1',
    'npx baton bench --no-warm-cores',
  ].map(command => ({
    command,
    reason: 'takes minutes; test/program/bench runs the same for seconds, and a check of the page asks for the options',
    file: 'package.json',
    texts: ['"baton": "./dist/cli/main.js"'],
  })),
  ...['npm run model', 'npm run model -- --trail no-timer'].map(command => ({
    command,
    reason:
      'takes minutes and needs Spin; test/docs/model checks that the models, what is run of them and their page agree',
    file: 'scripts/run-model.ts',
    texts: ['--trail', 'no-timer'],
  })),
]
