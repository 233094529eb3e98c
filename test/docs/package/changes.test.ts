import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { run, runNode } from '../../kit/program.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { root } from './imports.ts'

const at = (path: string) => fileURLToPath(new URL(path, root))

test('a release moves the changes of .changeset into the changelog unchanged, and raises the version', async () => {
  const folder = await emptyFolder()
  for (const path of ['package.json', 'CHANGELOG.md', '.changeset']) {
    await cp(at(path), join(folder, path), { recursive: true })
  }
  const change = ['---', '"redis-baton": minor', '---', '', 'What is new.', '', '- One.', '- Two.', '']
  await writeFile(join(folder, '.changeset/one-more.md'), change.join('\n'))
  for (const command of ['init -q -b main', 'add -A', '-c user.name=a -c user.email=a@b commit -qm all']) {
    expect(await run('git', command.split(' '), { cwd: folder })).toMatchObject({ code: 0 })
  }
  const before = await readFile(join(folder, 'CHANGELOG.md'), 'utf8')

  const { code, output, errors } = await runNode([at('node_modules/@changesets/cli/bin.js'), 'version'], {
    cwd: folder,
  })
  expect(code, output + errors).toBe(0)
  const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string }
  const { version: old } = JSON.parse(await readFile(at('package.json'), 'utf8')) as { version: string }
  const [major, minor] = old.split('.').map(Number) as [number, number]
  expect(version).toBe(`${major}.${minor + 1}.0`)

  const after = await readFile(join(folder, 'CHANGELOG.md'), 'utf8')
  expect(after).toMatch(new RegExp(`^# Changelog\n\n## ${version.replaceAll('.', '\\.')}\n`))
  expect(after).toContain('\n- What is new.\n\n  - One.\n  - Two.\n')
  expect(after.endsWith(before.slice(before.indexOf('\n')).trimStart())).toBe(true)
}, 70_000)
