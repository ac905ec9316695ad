package barnabas;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectUniqueId;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs tests and writes a line for each as it ends: `case TAB status TAB seconds TAB unique id TAB message`.
 *
 * `Run OUT-FILE TIMEOUT-SECONDS SELECTOR…`, a selector being a class, `class#method` or `uid:` and a unique id.
 */
public final class Run implements TestExecutionListener {
    private static final int MESSAGE_MAX = 8000;
    private static final Pattern INDEX = Pattern.compile("invocation:#(\\d+)");

    private final PrintStream out;
    private final Map<String, Long> begun = new HashMap<>();

    private Run(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] words) throws Exception {
        List<DiscoverySelector> selectors = new ArrayList<>();
        for (int n = 2; n < words.length; n++) {
            String word = words[n];
            selectors.add(word.startsWith("uid:") ? selectUniqueId(word.substring(4)) : word.contains("#") ? selectMethod(word) : selectClass(word));
        }
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request().selectors(selectors)
            .configurationParameter("junit.jupiter.execution.timeout.default", words[1] + " s")
            .configurationParameter("junit.jupiter.extensions.autodetection.enabled", "true").build();
        try (PrintStream out = new PrintStream(Files.newOutputStream(Path.of(words[0])), true, StandardCharsets.UTF_8)) {
            LauncherFactory.create().execute(request, new Run(out));
            out.println("end");
        }
        // Threads that a test left behind do not keep the process.
        Runtime.getRuntime().halt(0);
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        begun.put(test.getUniqueId(), System.nanoTime());
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        write(test, "skipped", 0, reason);
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        Throwable thrown = result.getThrowable().orElse(null);
        if (!test.isTest() && result.getStatus() == TestExecutionResult.Status.SUCCESSFUL) {
            return;
        }
        String status = switch (result.getStatus()) {
            case SUCCESSFUL -> "passed";
            case ABORTED -> "skipped";
            case FAILED -> "failed";
        };
        double seconds = (System.nanoTime() - begun.getOrDefault(test.getUniqueId(), System.nanoTime())) / 1e9;
        write(test, status, seconds, thrown == null ? "" : describe(thrown));
    }

    /** What was thrown, and where in the test. */
    private static String describe(Throwable thrown) {
        StringBuilder text = new StringBuilder(String.valueOf(thrown));
        for (StackTraceElement line : thrown.getStackTrace()) {
            if (line.getClassName().contains("Test") && !line.getClassName().contains("TestUtils") && !line.getClassName().contains("junit")) {
                text.append("  [").append(line.getFileName()).append(':').append(line.getLineNumber()).append(']');
                break;
            }
        }
        Throwable cause = thrown.getCause();
        if (cause != null && !String.valueOf(thrown).contains(String.valueOf(cause.getMessage()))) {
            text.append("  caused by ").append(cause);
        }
        return text.length() <= MESSAGE_MAX ? text.toString() : text.substring(0, MESSAGE_MAX) + "…";
    }

    private void write(TestIdentifier test, String status, double seconds, String message) {
        String flat = message == null ? "" : message.replaceAll("\\s+", " ").trim();
        out.printf("%s\t%s\t%.1f\t%s\t%s%n", name(test), status, seconds, test.getUniqueId().replace('\t', ' '), flat);
    }

    private static String name(TestIdentifier test) {
        TestSource source = test.getSource().orElse(null);
        StringBuilder indices = new StringBuilder();
        Matcher index = INDEX.matcher(test.getUniqueId());
        while (index.find()) {
            indices.append('[').append(index.group(1)).append(']');
        }
        if (source instanceof MethodSource method) {
            String owner = method.getClassName();
            return owner.substring(owner.lastIndexOf('.') + 1) + "." + method.getMethodName() + indices;
        }
        return test.getLegacyReportingName().replaceAll(".*\\.", "") + indices;
    }
}
