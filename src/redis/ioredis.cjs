/**
 * Loads the ioredis that is installed, where a client has to make connections from something else than an instance of it.
 * CommonJS, because nothing else loads a package on demand, at once, and where bundlers see it: docs/decisions/0026-clients.md.
 * @returns {typeof import('ioredis')}
 */
module.exports = () => require('ioredis')
