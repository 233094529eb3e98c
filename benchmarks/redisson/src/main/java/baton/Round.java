package baton;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Runs the waiters (ask, hold, release) and keeps the results. Each step runs on the thread on which Redisson completes
 * the previous step. The clock is read directly before and directly after each call, so the times contain nothing but
 * the call.
 */
final class Round {
  /**
   * How long a waiter pauses after an error, in ms. If the server is gone, each call fails at once. Without the pause,
   * the waiters would then repeat their calls in a busy loop.
   */
  private static final double AFTER_ERROR = 10;

  /** Waiters that have not finished. */
  private final CountDownLatch left;
  private final double hold;
  private final double openAt;
  private final double endAt;
  private final Samples samples = new Samples();
  private final AtomicInteger errors = new AtomicInteger();
  private final AtomicReference<String> firstError = new AtomicReference<>();
  private final long cpuBefore = cpu();

  /**
   * Each waiter asks again and again until {@code endAt}. If {@code endAt} is in the past, each waiter asks once. A
   * waiter that gets the lock before {@code openAt} keeps it until then.
   */
  Round(int waiters, double hold, double openAt, double endAt) {
    left = new CountDownLatch(waiters);
    this.hold = hold;
    this.openAt = openAt;
    this.endAt = endAt;
  }

  /** The first waiter asks at {@code startAt}, and each next waiter asks {@code gap} ms later. */
  void startAll(Locks.Contender[] contenders, double startAt, double gap) throws InterruptedException {
    for (int i = 0; i < contenders.length; i++) {
      if (gap > 0) Clock.sleepUntil(startAt + i * gap);
      new Waiter(i, contenders[i]).ask();
    }
  }

  void await(double giveUpAt) throws InterruptedException {
    left.await((long) ((giveUpAt - Clock.now()) * 1e6), TimeUnit.NANOSECONDS);
  }

  /** The processor time that the process has used since the round began, in µs. */
  long cpuUsed() {
    return cpu() - cpuBefore;
  }

  Report.Drained report(String op, String file, long cpu) throws IOException {
    long unfinished = left.getCount();
    int written = samples.writeTo(Path.of(file));
    return new Report.Drained(op, written, unfinished, errors.get(), firstError.get(), cpu);
  }

  private static long cpu() {
    return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime() / 1000;
  }

  private final class Waiter {
    private final int index;
    private final Locks.Contender contender;
    private double asked;
    private double acquired;

    Waiter(int index, Locks.Contender contender) {
      this.index = index;
      this.contender = contender;
    }

    void ask() {
      asked = Clock.now();
      contender.acquire().whenComplete((none, error) -> {
        acquired = Clock.now();
        double kept = Math.max(hold, openAt - acquired);
        if (error != null) refused(error);
        else if (kept > 0) Clock.in(kept, this::release);
        else release();
      });
    }

    private void release() {
      double released = Clock.now();
      int sample = samples.add(index, asked, acquired, released);
      contender.release().whenComplete((none, error) -> {
        if (error != null) {
          refused(error);
          return;
        }
        samples.finish(sample, Clock.now());
        next();
      });
    }

    private void refused(Throwable error) {
      Throwable cause = error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
      firstError.compareAndSet(null, cause.toString());
      errors.incrementAndGet();
      Clock.in(AFTER_ERROR, this::next);
    }

    private void next() {
      if (Clock.now() < endAt) ask();
      else left.countDown();
    }
  }
}
