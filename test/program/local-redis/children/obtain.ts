/** Obtains a Redis server as a program would, prints the server's URL, and then stops the server. */
import { obtainRedis } from '../../../../local-redis/index.ts'

const redis = await obtainRedis({ announce: line => console.log(line) })
console.log(redis.url)
await redis.stop()
