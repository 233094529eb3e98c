package baton;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Records of five numbers each, stored in blocks. A single array would have to be copied when it grows. The copying
 * would prolong a hold, because a record is added before the lock under test is released.
 */
final class Samples {
  private static final int FIELDS = 5;
  private static final int BLOCK = 4096;

  private double[] block = new double[BLOCK * FIELDS];
  private final List<double[]> blocks = new ArrayList<>(List.of(block));
  /** How many numbers have been written to `block`. */
  private int used;

  /**
   * Adds a record, and returns its number. The worker calls this when it begins to release the lock. When the release
   * is over, {@link #finish} adds the time; until then, that time is NaN.
   */
  synchronized int add(double waiter, double asked, double acquired, double released) {
    if (used == block.length) {
      block = new double[BLOCK * FIELDS];
      blocks.add(block);
      used = 0;
    }
    block[used++] = waiter;
    block[used++] = asked;
    block[used++] = acquired;
    block[used++] = released;
    block[used++] = Double.NaN;
    return count() - 1;
  }

  synchronized void finish(int sample, double done) {
    blocks.get(sample / BLOCK)[sample % BLOCK * FIELDS + FIELDS - 1] = done;
  }

  /** Writes the samples so far, and returns their number. */
  synchronized int writeTo(Path file) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(block.length * Double.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    try (OutputStream out = Files.newOutputStream(file)) {
      for (double[] each : blocks) {
        int length = each == block ? used : each.length;
        bytes.clear().asDoubleBuffer().put(each, 0, length);
        out.write(bytes.array(), 0, length * Double.BYTES);
      }
    }
    return count();
  }

  private int count() {
    return (blocks.size() - 1) * BLOCK + used / FIELDS;
  }
}
