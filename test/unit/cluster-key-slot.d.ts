/**
 * Types for `cluster-key-slot`, a package that has no types of its own. ioredis uses it to compute the cluster slot of
 * a key.
 */
declare module 'cluster-key-slot' {
  export default function calculateSlot(key: string): number
}
