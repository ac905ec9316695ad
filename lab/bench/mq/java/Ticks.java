import java.util.concurrent.atomic.AtomicLong;

/** Says how far a count is: {@code AT MICROS COUNT}, each second. */
final class Ticks extends Thread {
  private final AtomicLong count;

  Ticks(AtomicLong count) {
    this.count = count;
    setDaemon(true);
    start();
  }

  @Override
  public void run() {
    try {
      while (true) {
        System.out.println("AT " + Pace.micros() + " " + count.get());
        Thread.sleep(1000 - System.currentTimeMillis() % 1000);
      }
    } catch (InterruptedException over) {
      // The load has ended.
    }
  }
}
