package baton;

/** What the worker is told first. {@code lease} in ms; null: the watchdog renews it, as is Redisson's default. */
record Setting(
    String rival, String url, String namespace, int process, int processes, int waiters, Double lease) {

  String key(int index) {
    return namespace + ":k" + index;
  }
}
