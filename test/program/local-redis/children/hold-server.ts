/**
 * Starts a server as a child process, and prints the server's port. The argument says what this process then does: wait
 * for ever, call `process.exit`, or end because it has nothing more to do.
 */
import { chooseSource } from '../../../../local-redis/choose.ts'
import { fromDistribution } from '../../../../local-redis/debian.ts'
import { onPath } from '../../../../local-redis/path.ts'

const deed = process.argv[2]

const source = await chooseSource([onPath(), fromDistribution()])
const server = await source.start()
console.log(server.port)

if (deed === 'wait') setInterval(() => {}, 60_000)
if (deed === 'exit') process.exit(0)
