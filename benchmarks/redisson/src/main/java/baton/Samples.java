package baton;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Records of five numbers, in blocks: growing an array would copy it while the lock under test is held. */
final class Samples {
  private static final int FIELDS = 5;
  private static final int BLOCK = 4096;

  private double[] block = new double[BLOCK * FIELDS];
  private final List<double[]> blocks = new ArrayList<>(List.of(block));
  /** How many numbers the last block has. */
  private int used;

  /** Called when release is called. {@link #finish} adds when it returned; that stays NaN if it never did. */
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

  /** Writes the samples so far, and returns their number, because more may come while the file is written. */
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
