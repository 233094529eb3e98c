/** A dependency of ioredis, which comes without types: the cluster slot of a key. */
declare module 'cluster-key-slot' {
  export default function calculateSlot(key: string): number
}
