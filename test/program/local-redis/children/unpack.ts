/** Uses only the distribution's package, and prints which server it provided. */
import { chooseSource } from '../../../../local-redis/choose.ts'
import { fromDistribution } from '../../../../local-redis/debian.ts'

const source = await chooseSource([fromDistribution()])
const server = await source.start()
console.log(source.description)
await server.stop()
