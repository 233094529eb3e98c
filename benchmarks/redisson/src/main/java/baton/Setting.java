package baton;

/**
 * The first message to the worker. {@code lease} is in ms. If it is null, the lease is Redisson's default, which
 * Redisson renews. {@code lock}, {@code permits} and {@code writerEvery} are as in benchmarks/contract.ts, and null for
 * a mutex.
 */
record Setting(
    String rival,
    String url,
    String namespace,
    int process,
    int processes,
    int waiters,
    Double lease,
    String lock,
    Integer permits,
    Integer writerEvery) {

  String key(int index) {
    return namespace + ":k" + index;
  }

  /** Whether this waiter asks for the read lock. */
  boolean reads(int waiter) {
    return writerEvery == null || waiter % writerEvery != 0;
  }
}
