package baton;

import java.net.URI;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.Supplier;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/**
 * The locks under test. One Redisson client with its default settings serves the whole process, as Redisson intends.
 */
final class Locks {
  /** The time limit for a subscription, in ms. It is long, because thousands of waiters may subscribe at once. */
  private static final int PATIENCE = 60_000;

  private final RedissonClient redisson;
  private final Setting setting;
  private final AtomicLong ids = new AtomicLong();
  /** Names of the semaphores whose number of permits has been set. */
  private final Set<String> stocked = ConcurrentHashMap.newKeySet();

  Locks(Setting setting) {
    this.setting = setting;
    URI url = URI.create(setting.url());
    Config config = new Config();
    SingleServerConfig server = config.useSingleServer().setAddress(address(url)).setDatabase(database(url));
    // A fair lock needs a channel for each waiter, and any other lock needs one for each key. By default, Redisson
    // allows 250 channels (50 connections with 5 channels each), and 7.5 s for each subscription. If one of these
    // limits is exceeded, a request fails, and its error advises to raise the limit. So if 250 channels are not enough,
    // both limits are raised.
    int channels = setting.waiters() + 2;
    int pool = server.getSubscriptionConnectionPoolSize();
    if (channels > pool * server.getSubscriptionsPerConnection()) {
      server.setSubscriptionsPerConnection((channels + pool - 1) / pool);
      server.setSubscriptionTimeout(PATIENCE);
    }
    redisson = Redisson.create(config);
  }

  /** Returns a contender for this key. It must release the lock before it asks again. */
  Contender contender(String key, boolean reading) {
    return switch (setting.rival()) {
      case "redisson-lock" -> of(redisson.getLock(key));
      case "redisson-fair" -> of(redisson.getFairLock(key));
      case "redisson-read-write" -> of(
          reading ? redisson.getReadWriteLock(key).readLock() : redisson.getReadWriteLock(key).writeLock());
      case "redisson-semaphore" -> of(redisson.getSemaphore(key));
      case "redisson-permits" -> of(redisson.getPermitExpirableSemaphore(key));
      default -> throw new IllegalArgumentException("no rival of this worker: " + setting.rival());
    };
  }

  void close() {
    redisson.shutdown();
  }

  private Contender of(RLock lock) {
    // By default, Redisson identifies the owner by the id of the thread. The calls of a contender come from several
    // threads. So each contender has an id of its own, as Redisson's documentation recommends for callbacks.
    long id = ids.incrementAndGet();
    Double lease = setting.lease();
    return new Contender(
        () -> lease == null ? lock.lockAsync(id) : lock.lockAsync(lease.longValue(), TimeUnit.MILLISECONDS, id),
        none -> lock.unlockAsync(id));
  }

  private Contender of(RSemaphore semaphore) {
    if (stocked.add(semaphore.getName())) semaphore.trySetPermits(setting.permits());
    return new Contender(semaphore::acquireAsync, none -> semaphore.releaseAsync());
  }

  private Contender of(RPermitExpirableSemaphore semaphore) {
    if (stocked.add(semaphore.getName())) semaphore.trySetPermits(setting.permits());
    Double lease = setting.lease();
    return new Contender(
        () -> lease == null ? semaphore.acquireAsync() : semaphore.acquireAsync(lease.longValue(), TimeUnit.MILLISECONDS),
        permit -> semaphore.releaseAsync((String) permit));
  }

  /**
   * Asks for the lock and releases it. Some locks return an id with each grant, and need it for the release. So
   * {@code granted} keeps the id.
   */
  static final class Contender {
    private final Supplier<? extends CompletionStage<?>> ask;
    private final Function<Object, ? extends CompletionStage<?>> giveBack;
    private Object granted;

    private Contender(
        Supplier<? extends CompletionStage<?>> ask, Function<Object, ? extends CompletionStage<?>> giveBack) {
      this.ask = ask;
      this.giveBack = giveBack;
    }

    CompletionStage<?> acquire() {
      return ask.get().thenAccept(grant -> granted = grant);
    }

    CompletionStage<?> release() {
      return giveBack.apply(granted);
    }
  }

  /** Returns the URL with a port, which Redisson requires. A user and a password in the URL are kept. */
  private static String address(URI url) {
    String user = url.getRawUserInfo() == null ? "" : url.getRawUserInfo() + "@";
    return url.getScheme() + "://" + user + url.getHost() + ":" + (url.getPort() == -1 ? 6379 : url.getPort());
  }

  private static int database(URI url) {
    String path = url.getPath() == null ? "" : url.getPath().replace("/", "");
    return path.isEmpty() ? 0 : Integer.parseInt(path);
  }
}
