/**
 * Loads the installed ioredis, for clients that are not made from an ioredis instance. This file is CommonJS, because
 * only `require` loads a package synchronously and on demand, and only `require` is recognized by bundlers. See
 * docs/decisions/0026-clients.md.
 * @returns {typeof import('ioredis')}
 */
module.exports = () => require('ioredis')
