/**
 * A private certificate authority, made for one run and never stored. Node has functions for keys and signatures, but
 * none that makes a certificate. So this file encodes the certificate itself (X.509 in DER).
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  identifier: 0x06,
  text: 0x0c,
  time: 0x17,
  sequence: 0x30,
  set: 0x31,
} as const

/** Object identifiers in their DER encoding, by name. */
const OID = {
  commonName: Buffer.from('550403', 'hex'),
  basicConstraints: Buffer.from('551d13', 'hex'),
  subjectAltName: Buffer.from('551d11', 'hex'),
  ecdsaWithSha256: Buffer.from('2a8648ce3d040302', 'hex'),
} as const

function element(tag: number, ...content: (Buffer | string)[]): Buffer {
  const body = Buffer.concat(content.map(part => Buffer.from(part)))
  const { length } = body
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), body])
}

const sequence = (...content: Buffer[]) => element(TAG.sequence, ...content)
/** Encodes a field that has a number instead of a type (in ASN.1: a context-specific tag). */
const numbered = (number: number, content: Buffer) => element(0xa0 + number, content)
const nameOf = (name: string) =>
  sequence(element(TAG.set, sequence(element(TAG.identifier, OID.commonName), element(TAG.text, name))))
const timeOf = (ms: number) =>
  element(
    TAG.time,
    `${new Date(ms)
      .toISOString()
      .replace(/\.\d+|[-:T]/g, '')
      .slice(2)}`,
  )
const critical = element(TAG.boolean, Buffer.from([0xff]))
const signature = sequence(element(TAG.identifier, OID.ecdsaWithSha256))

/** An extension that allows the owner of the certificate to sign certificates. */
const forAuthority = sequence(
  element(TAG.identifier, OID.basicConstraints),
  critical,
  element(TAG.octets, sequence(critical)),
)
/** An extension that states the address of the certificate's owner: 127.0.0.1. */
const forLoopback = sequence(
  element(TAG.identifier, OID.subjectAltName),
  element(TAG.octets, sequence(element(0x87, Buffer.from([127, 0, 0, 1])))),
)

const DAY = 86_400_000

interface Party {
  readonly name: string
  readonly privateKey: KeyObject
}

/** Makes a certificate that is valid from yesterday to tomorrow, because clocks may differ. */
function certificate(subject: string, publicKey: KeyObject, issuer: Party, extension: Buffer): string {
  const content = sequence(
    numbered(0, element(TAG.integer, Buffer.from([2]))),
    element(TAG.integer, Buffer.from([1]), randomBytes(8)),
    signature,
    nameOf(issuer.name),
    sequence(timeOf(Date.now() - DAY), timeOf(Date.now() + DAY)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    numbered(3, sequence(extension)),
  )
  const signed = sign('sha256', content, issuer.privateKey)
  const whole = sequence(content, signature, element(TAG.bits, Buffer.from([0]), signed))
  const lines = whole.toString('base64').replace(/.{1,64}/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${lines}-----END CERTIFICATE-----\n`
}

export interface Credentials {
  readonly cert: string
  readonly key: string
}

export class Authority {
  readonly #party: Party
  /** The authority's own certificate, in PEM. */
  readonly cert: string

  constructor(name: string) {
    const { publicKey, privateKey } = newKeys()
    this.#party = { name, privateKey }
    this.cert = certificate(name, publicKey, this.#party, forAuthority)
  }

  /** Makes credentials in PEM for a server or a client on 127.0.0.1. */
  credentials(name: string): Credentials {
    const { publicKey, privateKey } = newKeys()
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    return { cert: certificate(name, publicKey, this.#party, forLoopback), key }
  }
}

function newKeys() {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
}
