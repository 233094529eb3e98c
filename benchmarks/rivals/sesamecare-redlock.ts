import type { Redis } from 'ioredis'
import { load } from './installed.ts'
import { defaults, quicker, type Redlock, redlockRival, type Timing } from './redlock.ts'

const from = '@sesamecare-oss/redlock'

export async function connectSesamecare(clients: Redis[], timing?: Timing): Promise<Redlock> {
  const { Redlock } = await load<typeof import('@sesamecare-oss/redlock')>(from)
  // The scripts of @sesamecare-oss/redlock select a database, 0 by default. Here they must use the URL's database.
  return new Redlock(clients, { db: clients[0]?.options.db ?? 0, ...timing })
}

export const sesamecareRedlock = redlockRival({ name: 'sesamecare-redlock', note: defaults, package: from }, clients =>
  connectSesamecare(clients),
)

export const sesamecareRedlock10ms = redlockRival(
  { name: 'sesamecare-redlock-10ms', note: quicker.note, package: from },
  clients => connectSesamecare(clients, quicker.timing),
)
