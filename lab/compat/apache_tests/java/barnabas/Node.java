package barnabas;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.common.network.ListenerName;
import org.opentest4j.TestAbortedException;

/** One process of Barnabas: its properties file, its log directories, its log. */
public final class Node {
    private static final String BINARY = System.getProperty("barnabas.binary");
    private static final int STOP_SECONDS = 60;

    final int id;
    final Path place;
    final Map<String, String> properties = new TreeMap<>();
    final Map<String, Integer> ports = new TreeMap<>();
    private Process process;
    private boolean ended = true;

    Node(int id, Path place) {
        this.id = id;
        this.place = place;
    }

    boolean isBroker() {
        return properties.get("process.roles").contains("broker");
    }

    boolean isController() {
        return properties.get("process.roles").contains("controller");
    }

    boolean isAlive() {
        return process != null && process.isAlive();
    }

    /** The port of a listener, or of the only one. */
    int port(ListenerName listener) {
        Integer found = ports.get(listener.value());
        return found != null ? found : ports.values().iterator().next();
    }

    /** Gives each listener with port 0 a port of its own. */
    void bind() {
        List<String> bound = new ArrayList<>();
        for (String listener : properties.get("listeners").split(",")) {
            int colon = listener.lastIndexOf(':');
            int port = Integer.parseInt(listener.substring(colon + 1).trim());
            String name = listener.substring(0, listener.indexOf("://")).trim();
            int given = port == 0 ? ports.computeIfAbsent(name, ignored -> Ports.free()) : port;
            ports.put(name, given);
            bound.add(listener.substring(0, colon + 1).trim() + given);
        }
        properties.put("listeners", String.join(",", bound));
    }

    void format(String clusterId, List<String> flags) {
        try {
            Files.createDirectories(place);
            String text = properties.entrySet().stream().map(e -> escape(e.getKey()) + "=" + escape(e.getValue()) + "\n").collect(Collectors.joining());
            Files.writeString(file(), text);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        List<String> command = new ArrayList<>(List.of(BINARY, "storage", "format", "-t", clusterId, "-c", file().toString()));
        command.addAll(flags);
        Process format = launch(command);
        if (!ends(format, STOP_SECONDS) || format.exitValue() != 0) {
            throw Unanswerable.refused("node " + id + " is not formatted", lastLines());
        }
    }

    void start() {
        if (isAlive()) {
            return;
        }
        process = launch(List.of(BINARY, "server", file().toString()));
        ended = false;
    }

    /** A clean stop, as Apache's shutdown is one. */
    void stop() {
        ended = true;
        if (!isAlive()) {
            return;
        }
        process.destroy();
        if (!ends(process, STOP_SECONDS)) {
            process.destroyForcibly();
            throw new IllegalStateException("node " + id + " did not stop within " + STOP_SECONDS + " s: " + lastLines());
        }
    }

    void kill() {
        ended = true;
        if (process != null) {
            process.destroyForcibly();
            ends(process, STOP_SECONDS);
        }
    }

    /** A sentence when the process ended although nothing asked it to. */
    String death() {
        if (ended || isAlive()) {
            return null;
        }
        RuntimeException refusal = Unanswerable.refused("node " + id + " ended by itself with " + process.exitValue(), lastLines());
        if (refusal instanceof TestAbortedException) {
            ended = true;
            throw refusal;
        }
        return refusal.getMessage();
    }

    String lastLines() {
        try {
            List<String> lines = Files.readAllLines(log(), StandardCharsets.UTF_8);
            return String.join(" | ", lines.subList(Math.max(0, lines.size() - 4), lines.size()));
        } catch (IOException error) {
            return "no log: " + error;
        }
    }

    private Process launch(List<String> command) {
        try {
            ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
            return builder.redirectOutput(ProcessBuilder.Redirect.appendTo(log().toFile())).start();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static boolean ends(Process process, int seconds) {
        try {
            return process.waitFor(seconds, TimeUnit.SECONDS);
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private Path file() {
        return place.resolve("server.properties");
    }

    private Path log() {
        return place.resolve("node.log");
    }

    private static String escape(String text) {
        return text.replace("\\", "\\\\").replace("\n", "\\n");
    }
}
