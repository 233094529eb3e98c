package baton;

/**
 * Uses the locks before the trial begins. Java compiles code that runs often, so the first seconds of a process are
 * several times slower than later ones. Each trial has new processes, so without a warm-up it would measure code that
 * is not compiled yet.
 */
final class WarmUp {
  private static final double ALONE = 1_000;
  private static final double CONTENDED = 2_000;
  /**
   * The largest number of waiters in the warm-up. With this many, each code path runs and the pool opens its
   * connections. Additional waiters would only wait.
   */
  private static final int MOST = 100;

  private WarmUp() {}

  /**
   * Uses keys that the trial does not use. First, several waiters of each process share one key. Then a single waiter
   * of each process locks a key of its own.
   */
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
