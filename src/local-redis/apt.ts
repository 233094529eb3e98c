/**
 * Fetching a package with apt, as any user and without changing the system.
 *
 * apt is given folders of its own for all it writes: lists, caches, logs. What it reads stays the system's: the
 * sources with their keys, and dpkg's record of what is installed. From that record apt itself works out which
 * libraries are missing here; those are downloaded with the package, the rest of the machine's are used.
 */
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './command.ts'
import { messageOf } from './error-message.ts'

const updateWithinMs = 180_000
const downloadWithinMs = 180_000
const unpackWithinMs = 30_000

/** Unpacks the first choice, which may be several packages, that `works` into `tree`. The caller removes the workshop. */
export async function fetchPackages(
  choices: readonly (readonly string[])[],
  workshop: string,
  tree: string,
  works: () => Promise<boolean>,
): Promise<void> {
  const config = await configure(workshop)
  const apt = (timeoutMs: number, ...args: string[]) =>
    run('apt-get', ['--config-file', config, ...args], { timeoutMs })

  // One unreachable source among several fails the update, while the others may well have the package.
  const troubles: string[] = []
  await apt(updateWithinMs, 'update').catch(error => troubles.push(messageOf(error)))

  for (const names of choices) {
    try {
      // --reinstall: named packages are fetched even where the system has them, e.g. outside the PATH.
      const flags = ['--yes', '--download-only', '--reinstall', '--no-install-recommends']
      await apt(downloadWithinMs, 'install', ...flags, ...names)
      await unpack(join(workshop, 'cache', 'archives'), tree)
      if (await works()) return
      troubles.push(`${names[0]} was unpacked, but does not run`)
    } catch (error) {
      troubles.push(messageOf(error))
    }
  }
  throw new Error(troubles.join('\n'))
}

async function unpack(archives: string, tree: string): Promise<void> {
  const files = (await readdir(archives)).filter(file => file.endsWith('.deb'))
  await mkdir(tree, { recursive: true })
  for (const file of files) await run('dpkg-deb', ['-x', join(archives, file), tree], { timeoutMs: unpackWithinMs })
}

/**
 * A file rather than -o options: it is read after the system's configuration, and only a file can clear the hooks
 * found there, which would otherwise act on the system's own caches.
 */
async function configure(workshop: string): Promise<string> {
  const folder = (name: string) => join(workshop, name)
  for (const name of ['state', 'lists/partial', 'cache/archives/partial', 'log']) {
    await mkdir(folder(name), { recursive: true })
  }
  const config = folder('apt.conf')
  const lines = [
    `Dir::State "${folder('state')}";`,
    `Dir::State::Lists "${folder('lists')}";`,
    `Dir::Cache "${folder('cache')}";`,
    `Dir::Log "${folder('log')}";`,
    'Debug::NoLocking "1";', // nothing shared is written, so the locks, which only root may take, are not needed
    'APT::Sandbox::User "";', // run by root, apt would otherwise download as a user who may not enter our folder
    'Acquire::Languages "none";',
    ...['Pre-Invoke', 'Post-Invoke', 'Post-Invoke-Success'].map(hook => `#clear APT::Update::${hook};`),
    ...['Pre-Invoke', 'Post-Invoke', 'Pre-Install-Pkgs'].map(hook => `#clear DPkg::${hook};`),
  ]
  await writeFile(config, `${lines.join('\n')}\n`)
  return config
}
