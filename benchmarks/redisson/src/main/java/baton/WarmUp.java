package baton;

/**
 * Java compiles what runs often, so the first seconds of a process are several times slower than those that follow. Each
 * trial has a process of its own; without this it would measure the compiler.
 */
final class WarmUp {
  private static final double ALONE = 1_000;
  private static final double CONTENDED = 2_000;
  /** More would only wait: by then each path has run, and the pool has its connections. */
  private static final int MOST = 100;

  private WarmUp() {}

  /** On keys of its own: several waiters that queue, with those of the other processes as well, and then one alone. */
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
