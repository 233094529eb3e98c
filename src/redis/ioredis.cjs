/**
 * Loads the installed ioredis, for clients that are not made from an ioredis instance. The file is CommonJS because
 * only `require` loads a package on demand and synchronously, and is seen by bundlers: docs/decisions/0026-clients.md.
 * @returns {typeof import('ioredis')}
 */
module.exports = () => require('ioredis')
