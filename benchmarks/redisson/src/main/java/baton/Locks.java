package baton;

import java.net.URI;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** The locks under test: one client a process, which is how Redisson is used, and its defaults. */
final class Locks {
  /** ms for subscribing, where thousands do so at once. */
  private static final int PATIENCE = 60_000;

  private final RedissonClient redisson;
  private final boolean fair;
  private final Double lease;
  private final AtomicLong ids = new AtomicLong();

  Locks(Setting setting) {
    fair = switch (setting.rival()) {
      case "redisson-fair" -> true;
      case "redisson-lock" -> false;
      default -> throw new IllegalArgumentException("no rival of this worker: " + setting.rival());
    };
    lease = setting.lease();

    URI url = URI.create(setting.url());
    Config config = new Config();
    SingleServerConfig server = config.useSingleServer().setAddress(address(url)).setDatabase(database(url));
    // A waiter of a fair lock has a channel of its own, and so has each key of the other. Where the default of 50 × 5
    // channels, each opened within 7.5 s, is too little, asking fails with the advice to raise these two.
    int channels = setting.waiters() + 2;
    int pool = server.getSubscriptionConnectionPoolSize();
    if (channels > pool * server.getSubscriptionsPerConnection()) {
      server.setSubscriptionsPerConnection((channels + pool - 1) / pool);
      server.setSubscriptionTimeout(PATIENCE);
    }
    redisson = Redisson.create(config);
  }

  /** One that asks for the lock, and may ask for another when it has released it. */
  Contender contender(String key) {
    RLock lock = fair ? redisson.getFairLock(key) : redisson.getLock(key);
    return new Contender(lock, ids.incrementAndGet());
  }

  void close() {
    redisson.shutdown();
  }

  final class Contender {
    private final RLock lock;
    /** In place of the thread's id, by which Redisson knows the owner: as its documentation says for callbacks. */
    private final long id;

    private Contender(RLock lock, long id) {
      this.lock = lock;
      this.id = id;
    }

    CompletionStage<Void> acquire() {
      return lease == null ? lock.lockAsync(id) : lock.lockAsync(lease.longValue(), TimeUnit.MILLISECONDS, id);
    }

    CompletionStage<Void> release() {
      return lock.unlockAsync(id);
    }
  }

  /** Redisson wants a port. It takes name and password from here as well. */
  private static String address(URI url) {
    String user = url.getRawUserInfo() == null ? "" : url.getRawUserInfo() + "@";
    return url.getScheme() + "://" + user + url.getHost() + ":" + (url.getPort() == -1 ? 6379 : url.getPort());
  }

  private static int database(URI url) {
    String path = url.getPath() == null ? "" : url.getPath().replace("/", "");
    return path.isEmpty() ? 0 : Integer.parseInt(path);
  }
}
