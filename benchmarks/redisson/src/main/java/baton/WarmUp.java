package baton;

/**
 * Java compiles code that runs often, so the first seconds of a process are several times slower than later ones. Each
 * trial has a process of its own, and without a warm-up it would measure the compiler.
 */
final class WarmUp {
  private static final double ALONE = 1_000;
  private static final double CONTENDED = 2_000;
  /** More waiters would only wait: with this many, each code path runs and the pool opens its connections. */
  private static final int MOST = 100;

  private WarmUp() {}

  /** On separate keys: first several waiters that queue with those of the other processes, then one alone. */
  static void run(Locks locks, Setting setting) throws InterruptedException {
    String key = setting.namespace() + ":warm";
    cycle(locks, key, Math.max(2, Math.min(setting.waiters(), MOST)), CONTENDED);
    cycle(locks, key + ":" + setting.process(), 1, ALONE);
  }

  private static void cycle(Locks locks, String key, int waiters, double ms) throws InterruptedException {
    double startAt = Clock.now();
    double endAt = startAt + ms;
    Locks.Contender[] contenders = new Locks.Contender[waiters];
    for (int i = 0; i < waiters; i++) contenders[i] = locks.contender(key, i % 2 == 1);
    Round round = new Round(waiters, 0, startAt, endAt);
    round.startAll(contenders, startAt, 0);
    round.await(endAt + ms);
  }
}
