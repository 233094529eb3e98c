/**
 * Re-entry across processes: a parent that holds a lock lets a child process work under the same lock. Both processes
 * use the same owner, so the child does not wait for its parent. Other callers wait until both have released the lock.
 */
import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379', LOCK_OWNER: parentsOwner } = process.env
const key = 'example:migration'

async function parent(locks: LockClient): Promise<void> {
  // Any process that uses this owner may re-enter the lock. The owner contains a random UUID, so that no other process
  // uses it by accident.
  const owner = `migration:${randomUUID()}`

  await locks.using(key, { owner, timeout: 10_000 }, async lease => {
    console.log(`parent: holds (${lease.via})`)
    // If the lock is lost, the child must stop. The lease's signal then kills the child, and the promise of `once`
    // rejects.
    const child = fork(fileURLToPath(import.meta.url), {
      env: { ...process.env, LOCK_OWNER: owner },
      signal: lease.signal,
    })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`the child failed with exit code ${code}`)
    console.log(`parent: still holds after the child's release: ${lease.held}`)
  })
  console.log(`parent: still locked: ${await locks.isLocked(key)}`)
}

async function child(locks: LockClient, owner: string): Promise<void> {
  await using stranger = await locks.tryLock(key)
  console.log(`child: without the owner: ${stranger ? 'granted' : 'refused'}`)

  // Every lock that is taken inside `runAs` belongs to the owner, even if the code that takes it does not know the
  // owner.
  await locks.runAs(owner, () =>
    locks.using(key, { timeout: 10_000 }, lease => console.log(`child: as the owner: granted (${lease.via})`)),
  )
}

await using locks = new LockClient(REDIS_URL)
await (parentsOwner === undefined ? parent(locks) : child(locks, parentsOwner))
