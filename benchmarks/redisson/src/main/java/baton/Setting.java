package baton;

/**
 * What the worker is told first. {@code lease} in ms; null: the watchdog renews it, as is Redisson's default. {@code lock},
 * {@code permits} and {@code writerEvery} as in benchmarks/contract.ts; null where the lock is a mutex.
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
