/** Finds all messages that the program and the library show to users. */
import { type Message, messagesIn } from './messages-in.ts'
import type { Tree } from './tree.ts'

const rooms = /^(?:src|cli|local-redis|benchmarks\/(?:report|scenarios|run))\b.*\.ts$/
/** Files whose texts are not messages: their texts are for machines, or name the goals of the benchmarks. */
const notForPeople = /style\.ts$|^cli\/ui\/assets|html-style|^benchmarks\/report\/goals?\.ts$/

export function messagesOf(tree: Tree): Message[] {
  const files = tree.files.filter(file => rooms.test(file) && !notForPeople.test(file))
  return files.flatMap(file => messagesIn(file, tree.read(file)))
}
