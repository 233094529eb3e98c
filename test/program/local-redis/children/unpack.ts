/**
 * Starts a server from the package of the Linux distribution, even if another server is installed. Prints the
 * description of the server.
 */
import { chooseSource } from '../../../../local-redis/choose.ts'
import { fromDistribution } from '../../../../local-redis/debian.ts'

const source = await chooseSource([fromDistribution()])
const server = await source.start()
console.log(source.description)
await server.stop()
