import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What every reader shares: when messages became readable, by the times in them (see Pace).
 *
 * <p>{@code END FROM_MICROS TO_MICROS} on standard input ends it; messages whose put began in between count. It answers {@code SENT count p50 p99 max}, from when their put
 * began, and {@code DUE …}, from when they were due; in µs.
 */
final class Tally {
  private static final int MOST = 2_000_000;

  private final AtomicLong count = new AtomicLong();
  private final long[] due = new long[MOST];
  private final int[] late = new int[MOST];
  private final int[] took = new int[MOST];
  private volatile int kept;

  Tally() {
    new Thread(this::end).start();
  }

  void ready() {
    System.out.println("READY");
    new Ticks(count);
  }

  /** Of one thread. */
  void read(byte[] payload) {
    long now = Pace.micros();
    if (kept < MOST) {
      due[kept] = number(payload, 0);
      late[kept] = (int) Math.min(Integer.MAX_VALUE, now - due[kept]);
      took[kept] = (int) Math.min(Integer.MAX_VALUE, now - number(payload, 17));
      kept++;
    }
    count.incrementAndGet();
  }

  private static long number(byte[] payload, int at) {
    long value = 0;
    for (int digit = 0; digit < 16; digit++) {
      value = value * 10 + payload[at + digit] - '0';
    }
    return value;
  }

  private void end() {
    try {
      String[] words = new BufferedReader(new InputStreamReader(System.in)).readLine().split(" ");
      say("SENT", took, Long.parseLong(words[1]), Long.parseLong(words[2]));
      say("DUE", late, Long.parseLong(words[1]), Long.parseLong(words[2]));
      System.out.println("DONE " + count.get());
      System.out.flush();
    } catch (Exception error) {
      System.out.println("FAILED " + error);
    }
    Runtime.getRuntime().halt(0);
  }

  private void say(String what, int[] of, long from, long to) {
    int[] chosen = new int[kept];
    int found = 0;
    for (int at = 0; at < chosen.length; at++) {
      long sent = due[at] + late[at] - took[at];
      if (sent >= from && sent < to) {
        chosen[found++] = of[at];
      }
    }
    Arrays.sort(chosen, 0, found);
    if (found == 0) {
      System.out.println(what + " 0 0 0 0");
      return;
    }
    System.out.println(what + " " + found + " " + chosen[(found - 1) / 2] + " " + chosen[(int) ((found - 1) * 0.99 + 0.5)] + " " + chosen[found - 1]);
  }
}
