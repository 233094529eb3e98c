import { addressIn, elsewhere, tooMany } from './elsewhere.ts'
import { load } from './installed.ts'

// The package pg has no type declarations, so this file declares what it uses.
interface Library {
  readonly Pool: new (options: { connectionString: string; max: number }) => Pool
}
interface Pool {
  connect(): Promise<Connection>
  end(): Promise<void>
}
interface Connection {
  query(sql: string, values: readonly string[]): Promise<unknown>
  release(): void
}

const variable = 'BATON_POSTGRES'

/**
 * An advisory lock belongs to a connection, and ends with it. A call that waits occupies its connection until it is
 * granted the lock. So each waiter has a connection of its own, from the pool of its process.
 */
export const postgres = elsewhere({
  name: 'postgres',
  fair: false,
  package: 'pg',
  variable,
  example: 'postgres://127.0.0.1:5432/postgres',
  note: 'PostgreSQL instead of Redis, so --rtt does not apply: pg_advisory_lock, one connection per waiter from a pool of pg. It has no lease: the lock ends with its connection.',
  skips: tooMany,
  async open({ waiters }) {
    const { Pool } = await load<Library>('pg')
    const pool = new Pool({ connectionString: addressIn(variable), max: waiters })
    return {
      contender: () => ({
        async acquire(key) {
          const connection = await pool.connect()
          await connection.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [key])
          return async () => {
            await connection.query('SELECT pg_advisory_unlock(hashtextextended($1, 0))', [key])
            connection.release()
          }
        },
      }),
      close: () => pool.end(),
    }
  },
})
