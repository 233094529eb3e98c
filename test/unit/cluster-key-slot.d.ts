/** Types for a dependency of ioredis that has none. It computes the cluster slot of a key. */
declare module 'cluster-key-slot' {
  export default function calculateSlot(key: string): number
}
