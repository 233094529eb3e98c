/** The slot of a cluster that a key or channel belongs to: CRC16 (XMODEM) of its hash tag, or of all of it. */
export function slotOf(name: string): number {
  // Between the first "{" and the first "}" behind it, unless nothing stands there.
  const [, tag = name] = /^[^{]*\{([^}]+)\}/.exec(name) ?? []
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)
  }
  return crc & 0x3fff
}
