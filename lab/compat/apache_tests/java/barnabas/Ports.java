package barnabas;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.ThreadLocalRandom;

/** Free ports below the range from which the system gives ports to clients. */
final class Ports {
    private static final int FIRST = 10_000;
    private static final int END = 32_000;

    private Ports() {
    }

    static int free() {
        for (int attempt = 0; attempt < 200; attempt++) {
            int port = ThreadLocalRandom.current().nextInt(FIRST, END);
            try (ServerSocket ignored = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return port;
            } catch (IOException taken) {
                // The next one.
            }
        }
        throw new IllegalStateException("no free port between " + FIRST + " and " + END);
    }
}
