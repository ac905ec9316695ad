import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Instant;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * What every sender shares: when each message is due, what is in it, and how many are put.
 *
 * <p>A message begins with two times in µs since 1970, 16 digits each: when it was due, and when its put began. The rest is filled up. {@code READY} is
 * printed once all connections are there; {@code GO START_MS SECONDS} on standard input starts the load. A line a second says how many are put
 * (acknowledged, and committed), {@code DONE n} ends it.
 */
final class Pace {
  private static final int HEAD = 34;

  final int threads;
  private final int perSecond;
  private final byte[] filled;
  private final AtomicLong done = new AtomicLong();
  private long startMicros;
  private long endMicros;

  /** {@code perSecond} 0: as fast as it goes. */
  Pace(int perSecond, int threads, int size) {
    this.perSecond = perSecond;
    this.threads = threads;
    filled = new byte[Math.max(size, HEAD)];
    Arrays.fill(filled, (byte) 'x');
  }

  interface Sender {
    /** Sends one. {@code commits}: with it ends a unit of work. */
    void send(byte[] payload, boolean commits) throws Exception;

    /** After the last one. */
    default void end() {}
  }

  interface Opener {
    Sender open() throws Exception;
  }

  static long micros() {
    Instant now = Instant.now();
    return now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
  }

  /** {@code unit}: messages of a unit of work, 1 where each is put alone. */
  void run(Opener opener, int unit) throws Exception {
    Sender[] senders = new Sender[threads];
    for (int at = 0; at < threads; at++) {
      senders[at] = opener.open();
    }
    System.out.println("READY");
    String[] go = new BufferedReader(new InputStreamReader(System.in)).readLine().split(" ");
    startMicros = Long.parseLong(go[1]) * 1000;
    endMicros = startMicros + Long.parseLong(go[2]) * 1_000_000;
    Thread[] running = new Thread[threads];
    for (int at = 0; at < threads; at++) {
      int number = at;
      running[at] = new Thread(() -> work(senders[number], number, unit));
      running[at].start();
    }
    Ticks ticks = new Ticks(done);
    for (Thread one : running) {
      one.join();
    }
    ticks.interrupt();
    System.out.println("DONE " + done.get());
    System.out.flush();
    // Connections end with the process.
    Runtime.getRuntime().halt(0);
  }

  private void work(Sender sender, int number, int unit) {
    byte[] payload = filled.clone();
    try {
      sleepUntil(startMicros);
      for (long turn = 0; ; turn++) {
        long due = perSecond == 0 ? micros() : startMicros + (turn * threads + number) * 1_000_000 / perSecond;
        boolean last = perSecond == 0 ? due >= endMicros : due + (long) threads * 1_000_000 / perSecond >= endMicros;
        sleepUntil(due);
        long now = micros();
        if (due >= endMicros || now >= endMicros) {
          last = true;
        }
        write(payload, 0, due);
        write(payload, 17, now);
        boolean commits = last || (turn + 1) % unit == 0;
        sender.send(payload, commits);
        if (commits) {
          done.addAndGet(turn % unit + 1);
        }
        if (last) {
          sender.end();
          return;
        }
      }
    } catch (Exception error) {
      System.out.println("FAILED " + error);
      System.out.flush();
      Runtime.getRuntime().halt(1);
    }
  }

  private static void sleepUntil(long due) {
    for (long left = due - micros(); left > 0; left = due - micros()) {
      LockSupport.parkNanos(left * 1000);
    }
  }

  private static void write(byte[] payload, int at, long value) {
    for (int digit = 15; digit >= 0; digit--) {
      payload[at + digit] = (byte) ('0' + value % 10);
      value /= 10;
    }
    payload[at + 16] = ' ';
  }
}
