/**
 * Returns the cluster slot of a key or channel. The slot is the CRC16 (XMODEM) of the hash tag, or of the whole name if
 * the name has no tag.
 */
export function slotOf(name: string): number {
  // The tag is the text between the first "{" and the first "}" after it. An empty tag does not count.
  const [, tag = name] = /^[^{]*\{([^}]+)\}/.exec(name) ?? []
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)
  }
  return crc & 0x3fff
}
