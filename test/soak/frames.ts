/** Messages of Redis on a connection in subscriber mode: found in the bytes that pass a proxy. */

const MESSAGE = Buffer.from('*3\r\n$7\r\nmessage\r\n')

/** Whether the bytes are whole messages and nothing else, so that they may be dropped or doubled without breaking the stream. */
export function areMessages(data: Buffer): boolean {
  let at = 0
  while (at < data.length) {
    if (data.compare(MESSAGE, 0, MESSAGE.length, at, Math.min(data.length, at + MESSAGE.length)) !== 0) return false
    const end = afterBulk(data, afterBulk(data, at + MESSAGE.length))
    if (end === undefined || end > data.length) return false
    at = end
  }
  return data.length > 0
}

/** Where the bulk string that begins here ends. */
function afterBulk(data: Buffer, at: number | undefined): number | undefined {
  if (at === undefined || data[at] !== 0x24) return undefined
  const line = data.indexOf('\r\n', at)
  return line < 0 ? undefined : line + 2 + Number(data.toString('latin1', at + 1, line)) + 2
}
