/** Reads the files of the project, as they are now or as they were at a commit. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

export interface Tree {
  /** Sorted paths relative to the project's root, without generated files and measured results. */
  readonly files: readonly string[]
  read(file: string): string
}

/** Calls `use` with the files of the commit `ref`, or with the present files. */
export function withTree<T>(ref: string | undefined, use: (tree: Tree) => T): T {
  if (ref === undefined) return use(treeIn(root, git('ls-files', '--cached', '--others', '--exclude-standard')))
  const folder = mkdtempSync(join(tmpdir(), 'words-'))
  try {
    const archive = join(folder, 'files.tar')
    git('archive', '--format=tar', '--output', archive, ref)
    execFileSync('tar', ['-xf', archive, '-C', folder])
    return use(treeIn(folder, git('ls-tree', '-r', '--name-only', ref)))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function treeIn(folder: string, listing: string): Tree {
  const files = listing.split('\n').filter(file => file !== '' && !/generated|^benchmarks\/results\//.test(file))
  return { files: files.sort(), read: file => readFileSync(join(folder, file), 'utf8') }
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 1e8 })
}
