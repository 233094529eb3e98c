/**
 * Fetches packages with apt, as any user and without changing the system.
 *
 * apt writes its lists, caches and logs only into folders that this module gives it. It reads the system's own files:
 * the sources with their keys, and dpkg's record of what is installed. From that record, apt works out which libraries
 * are missing. It downloads the missing libraries with the package. Libraries that are installed already are not
 * downloaded.
 *
 * A package from another suite of Debian is fetched with all its libraries, down to the C library, because this
 * machine's libraries may be too old or too new for it. For this, apt gets an empty record of what is installed, and
 * that suite as its only source.
 */
import { access, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './command.ts'
import { messageOf } from './error-message.ts'

const updateWithinMs = 180_000
const downloadWithinMs = 180_000
const unpackWithinMs = 30_000

export interface Order {
  /**
   * The choices to try, in this order. Each choice names packages that are unpacked together. The first choice that
   * works is used.
   */
  readonly choices: readonly (readonly string[])[]
  /** Debian's code name for the release to take the packages from. Default: this machine's release. */
  readonly suite?: string
}

/** Unpacks the ordered packages into `tree`. The caller removes the folder `workshop`. */
export async function fetchPackages(
  { choices, suite }: Order,
  workshop: string,
  tree: string,
  works: () => Promise<boolean>,
): Promise<void> {
  const config = await configure(workshop, suite === undefined ? [] : await foreignSuite(workshop, suite))
  const apt = (timeoutMs: number, ...args: string[]) =>
    run('apt-get', ['--config-file', config, ...args], { timeoutMs })

  // If one source is unreachable, `apt-get update` fails. The failure is only noted, because another source may have
  // the package.
  const troubles: string[] = []
  await apt(updateWithinMs, 'update').catch(error => troubles.push(messageOf(error)))

  for (const names of choices) {
    try {
      // Without --reinstall, apt would not fetch a package that is installed already. The package may be installed,
      // with its program in a folder that is not on the PATH.
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
 * Writes a configuration file. The system's configuration may set hooks that act on the system's own caches. Options on
 * the command line cannot clear these hooks. This file can, because apt reads it after the system's configuration.
 */
async function configure(workshop: string, more: readonly string[]): Promise<string> {
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
    'Debug::NoLocking "1";', // apt writes only into private folders, so it needs no locks, which only root may take
    'APT::Sandbox::User "";', // root downloads as root, because apt's own user may not enter this folder
    'Acquire::Languages "none";',
    ...['Pre-Invoke', 'Post-Invoke', 'Post-Invoke-Success'].map(hook => `#clear APT::Update::${hook};`),
    ...['Pre-Invoke', 'Post-Invoke', 'Pre-Install-Pkgs'].map(hook => `#clear DPkg::${hook};`),
    ...more,
  ]
  await writeFile(config, `${lines.join('\n')}\n`)
  return config
}

/**
 * Returns apt settings that fetch packages of `suite` together with all their libraries. The only source is this suite,
 * at the mirror that this machine uses. The record of installed packages is empty.
 */
async function foreignSuite(workshop: string, suite: string): Promise<string[]> {
  const keyring = (await existing(keyrings)) ?? ''
  const source = join(workshop, 'sources.list')
  const status = join(workshop, 'status')
  await writeFile(source, `deb ${keyring && `[signed-by=${keyring}] `}${await mirror()} ${suite} main\n`)
  await writeFile(status, '')
  return [
    `Dir::State::status "${status}";`,
    `Dir::Etc::SourceList "${source}";`,
    'Dir::Etc::SourceParts "/dev/null";',
    'Dir::Etc::PreferencesParts "/dev/null";', // ignores version pins: they are for this machine's release
    'Dir::Etc::Preferences "/dev/null";',
  ]
}

/** Debian's keys for all its suites. The keys that apt uses here may cover only this machine's release. */
const keyrings = ['pgp', 'gpg'].map(ending => `/usr/share/keyrings/debian-archive-keyring.${ending}`)

async function existing(files: readonly string[]): Promise<string | undefined> {
  for (const file of files)
    if (
      await access(file).then(
        () => true,
        () => false,
      )
    )
      return file
  return undefined
}

const debianReleases = /^(bullseye|bookworm|trixie|forky|duke|sid|oldoldstable|oldstable|stable|testing|unstable)$/

/**
 * Returns the URI of the first apt source of this machine that is a mirror of Debian. A source counts as a mirror of
 * Debian if the name of its release is one of Debian's.
 */
async function mirror(): Promise<string> {
  const format = '$(RELEASE) $(REPO_URI)'
  const targets = await run('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], {
    timeoutMs: unpackWithinMs,
  })
  for (const line of targets.split('\n')) {
    const [release = '', uri] = line.split(' ')
    if (uri && debianReleases.test(release)) return uri
  }
  throw new Error("none of this machine's package sources is a mirror of Debian")
}
