/**
 * Finds an image for each row of the matrix. If the row's environment variable names an image, that image is used.
 * Otherwise the official image is used. If the container engine does not have it, the image is pulled from a registry.
 * If it cannot be pulled, an image is made from Debian's packages of the row's version.
 *
 * An image made from packages consists of the server and the libraries that the server's package names. The image's
 * entry point is the server. So arguments that begin with a dash go to the server, as with the official images.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type ContainerRuntimeClient, getContainerRuntimeClient } from 'testcontainers'
import { messageOf } from '../../local-redis/error-message.ts'
import { unpackPackages } from '../../local-redis/packages.ts'
import type { ServerRow } from './servers.ts'

type Dockerode = ContainerRuntimeClient['container']['dockerode']

export interface Image {
  readonly name: string
  readonly from: string
}

const pullWithinMs = 180_000

export class Images {
  readonly #engine: Dockerode
  /** Why no image could be pulled. Once the reason is set, no other pull is tried. */
  #unreachable: string | undefined

  private constructor(engine: Dockerode) {
    this.#engine = engine
  }

  static async of(): Promise<Images> {
    return new Images((await getContainerRuntimeClient()).container.dockerode)
  }

  async for(row: ServerRow): Promise<Image> {
    const named = process.env[row.variable]
    if (named) {
      if (!(await this.#has(named))) await this.#pull(named)
      return { name: named, from: `named by ${row.variable}` }
    }
    if (await this.#has(row.image)) return { name: row.image, from: 'official, was there' }
    this.#unreachable ??= await this.#pull(row.image).then(() => undefined, messageOf)
    if (this.#unreachable === undefined) return { name: row.image, from: 'official, pulled' }
    return this.#made(row).catch(error => {
      throw new Error(`no image for ${row.name}: ${this.#unreachable}; ${messageOf(error)}`)
    })
  }

  #has(image: string): Promise<boolean> {
    return this.#engine
      .getImage(image)
      .inspect()
      .then(
        () => true,
        () => false,
      )
  }

  async #pull(image: string): Promise<void> {
    const limit = AbortSignal.timeout(pullWithinMs)
    const progress = await this.#engine.pull(image, { abortSignal: limit })
    await new Promise<void>((resolve, reject) =>
      this.#engine.modem.followProgress(progress, error => (error ? reject(error) : resolve())),
    )
  }

  async #made(row: ServerRow): Promise<Image> {
    const { product, suite } = row
    const server = join('usr', 'bin', `${product}-server`)
    const unpacked = await unpackPackages(
      {
        name: `${product}-image`,
        // The package base-files contains links such as /lib, through which a program finds the C library's loader.
        choices: [['base-files', `${product}-server`, `${product}-tools`]],
        suite,
        // Only checks that the server's file exists. The server may not run on this machine, because it is built for
        // another release of Debian.
        find: tree =>
          access(join(tree, server)).then(
            () => tree,
            () => undefined,
          ),
      },
      process.env,
    )
    if ('unavailable' in unpacked) throw new Error(unpacked.unavailable)
    // The tag contains the time at which the tree was unpacked, so that an image of an older tree is not used.
    const { ctimeMs } = await stat(unpacked.found)
    const [repo, tag] = [`redis-baton/${product}`, `${suite}-${Math.round(ctimeMs)}`]
    const name = `${repo}:${tag}`
    if (!(await this.#has(name))) await this.#import(unpacked.found, { repo, tag, server: `/${server}` })
    return { name, from: `packages of ${unpacked.distribution}` }
  }

  async #import(tree: string, { repo, tag, server }: { repo: string; tag: string; server: string }): Promise<void> {
    const tar = spawn('tar', ['-C', tree, '--exclude=./usr/share', '--exclude=./var/*', '-c', '.'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const ended = once(tar, 'close')
    const changes = `ENTRYPOINT ["${server}"]\nWORKDIR /tmp`
    const progress = await this.#engine.importImage(tar.stdout, { repo, tag, changes })
    await new Promise<void>((resolve, reject) =>
      this.#engine.modem.followProgress(progress, error => (error ? reject(error) : resolve())),
    )
    const [code] = await ended
    if (code !== 0) throw new Error(`tar ended with ${code}`)
  }
}
