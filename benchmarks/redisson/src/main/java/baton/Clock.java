package baton;

import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * The machine's monotonic clock (CLOCK_MONOTONIC), which is the same in all processes, and ways to wait for a later
 * time. Times are in ms.
 */
final class Clock {
  private static final ScheduledExecutorService later = Executors.newSingleThreadScheduledExecutor(task -> {
    Thread thread = new Thread(task, "clock");
    thread.setDaemon(true);
    return thread;
  });

  private Clock() {}

  static double now() {
    return System.nanoTime() / 1e6;
  }

  static void in(double ms, Runnable task) {
    later.schedule(task, Math.max(0, Math.round(ms * 1e6)), TimeUnit.NANOSECONDS);
  }

  static void sleepUntil(double at) throws InterruptedException {
    for (double left = at - now(); left > 0; left = at - now()) TimeUnit.NANOSECONDS.sleep((long) (left * 1e6) + 1);
  }
}
