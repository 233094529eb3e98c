package baton;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;

/**
 * A worker of the benchmark for Redisson's locks. It reads orders as JSON lines from standard input, and writes one
 * report for each order to standard output. benchmarks/contract.ts defines the orders and the reports.
 */
public final class Worker {
  private static final ObjectMapper json = new ObjectMapper();

  private Setting setting;
  private Locks locks;
  private Locks.Contender[] holders = {};
  private Round queued;

  private Worker() {}

  public static void main(String[] args) throws IOException {
    PrintStream out = System.out;
    System.setOut(System.err); // only reports go to standard output, and the output of libraries goes to standard error
    Worker worker = new Worker();
    ExecutorService orders = Executors.newSingleThreadExecutor();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String order = line;
      orders.execute(() -> {
        Report report = worker.answer(order);
        try {
          out.println(json.writeValueAsString(report));
          out.flush();
        } catch (IOException error) {
          throw new java.io.UncheckedIOException(error);
        }
        if (report instanceof Report.Done done && done.op().equals("close")) end(0);
      });
    }
    end(0); // the runner has closed the input and reads no more reports, so an unfinished order is abandoned
  }

  /** Exits even if threads of the library or closing connections remain. */
  private static void end(int code) {
    Runtime.getRuntime().halt(code);
  }

  private Report answer(String line) {
    try {
      JsonNode order = json.readTree(line);
      String op = order.path("op").asText();
      if (locks == null && !op.equals("open")) throw new IllegalStateException(op + " before open");
      return switch (op) {
        case "open" -> open(op, json.treeToValue(order.get("setting"), Setting.class));
        case "loop" -> loop(op, order);
        case "hold" -> hold(op, order.path("count").asInt(1));
        case "drop" -> drop(op);
        case "queue" -> queue(op, order);
        case "collect" -> collect(op, order);
        case "memory" -> memory(op);
        case "close" -> close(op);
        default -> throw new IllegalArgumentException("no such order: " + op);
      };
    } catch (Exception error) {
      return new Report.Failed("failed", error.toString());
    }
  }

  private Report open(String op, Setting given) throws InterruptedException {
    setting = given;
    locks = new Locks(given);
    WarmUp.run(locks, given);
    return new Report.Done(op);
  }

  private Report loop(String op, JsonNode order) throws InterruptedException, IOException {
    double startAt = order.get("startAt").asDouble();
    double gap = order.get("gap").asDouble();
    double openAt = order.get("openAt").asDouble();
    double endAt = order.get("endAt").asDouble();
    Locks.Contender[] contenders = contenders(order.get("keys").asInt());
    Clock.sleepUntil(startAt);
    Round round = new Round(contenders.length, order.get("hold").asDouble(), openAt, endAt);
    round.startAll(contenders, startAt, gap);
    Clock.sleepUntil(endAt);
    long cpu = round.cpuUsed();
    round.await(order.get("giveUpAt").asDouble());
    return round.report(op, order.get("file").asText(), cpu);
  }

  private Report hold(String op, int count) {
    holders = new Locks.Contender[count];
    for (int i = 0; i < count; i++) holders[i] = locks.contender(setting.key(0), false);
    all(Locks.Contender::acquire);
    return new Report.At(op, Clock.now());
  }

  private Report drop(String op) {
    if (holders.length == 0) throw new IllegalStateException("drop without hold");
    double calledAt = Clock.now();
    all(Locks.Contender::release);
    holders = new Locks.Contender[] {};
    return new Report.Dropped(op, calledAt, Clock.now());
  }

  /** Starts {@code step} for all holders at once, and waits until it has completed for each of them. */
  private void all(Function<Locks.Contender, CompletionStage<?>> step) {
    CompletableFuture.allOf(
            Arrays.stream(holders).map(holder -> step.apply(holder).toCompletableFuture()).toArray(CompletableFuture[]::new))
        .join();
  }

  private Report queue(String op, JsonNode order) throws InterruptedException {
    double startAt = order.get("startAt").asDouble();
    double gap = order.get("gap").asDouble();
    Locks.Contender[] contenders = contenders(1);
    Clock.sleepUntil(startAt);
    queued = new Round(contenders.length, order.get("hold").asDouble(), startAt, Double.NEGATIVE_INFINITY);
    queued.startAll(contenders, startAt, gap);
    return new Report.At(op, Clock.now());
  }

  private Report collect(String op, JsonNode order) throws InterruptedException, IOException {
    if (queued == null) throw new IllegalStateException("collect before queue");
    queued.await(order.get("giveUpAt").asDouble());
    return queued.report(op, order.get("file").asText(), queued.cpuUsed());
  }

  private Report memory(String op) throws IOException {
    System.gc();
    long heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    return new Report.Memory(op, resident(), heap);
  }

  private Report close(String op) {
    locks.close();
    return new Report.Done(op);
  }

  private Locks.Contender[] contenders(int keys) {
    Locks.Contender[] contenders = new Locks.Contender[setting.waiters()];
    for (int i = 0; i < contenders.length; i++) contenders[i] = locks.contender(setting.key(i % keys), setting.reads(i));
    return contenders;
  }

  private static long resident() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
    }
    throw new IOException("/proc/self/status has no VmRSS");
  }
}
