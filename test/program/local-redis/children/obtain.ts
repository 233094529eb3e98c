/** Obtains a Redis as a program would, prints its url, and stops it when its work is done. */
import { obtainRedis } from '../../../../local-redis/index.ts'

const redis = await obtainRedis({ announce: line => console.log(line) })
console.log(redis.url)
await redis.stop()
