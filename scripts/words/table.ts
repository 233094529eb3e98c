/** All that users see of the program and the library. */
import { type Message, messagesIn } from './messages-in.ts'
import type { Tree } from './tree.ts'

const rooms = /^(?:src|cli|local-redis|benchmarks\/(?:report|scenarios|run))\b.*\.ts$/
/** Texts for machines. */
const notForPeople = /style\.ts$|^cli\/ui\/assets|html-style/

export function messagesOf(tree: Tree): Message[] {
  const files = tree.files.filter(file => rooms.test(file) && !notForPeople.test(file))
  return files.flatMap(file => messagesIn(file, tree.read(file)))
}
