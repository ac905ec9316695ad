package barnabas;

import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.opentest4j.TestAbortedException;

/**
 * What a test asked of a broker's objects that a process of its own cannot answer: the test is skipped with this reason.
 *
 * Nothing else turns a failure into a skip, whatever the node's log says. A failure that has a reason stands in known.toml.
 */
public final class Unanswerable {
    private static final AtomicReference<String> FIRST = new AtomicReference<>();
    private static final Pattern METER = Pattern.compile("Unable to find metric|^metric not found");
    private static final Pattern NOT_THERE = Pattern.compile("barnabas: [^|]*(is not there yet|does not speak yet|not available yet)[^|]*");

    private Unanswerable() {
    }

    static void forget() {
        FIRST.set(null);
    }

    /** Ends the test as skipped, also where a loop around this call swallows the exception. */
    public static TestAbortedException reached(String what) {
        FIRST.compareAndSet(null, what);
        return new TestAbortedException("reaches into the broker's objects: " + what);
    }

    /** A node that refuses a setting because this version has no such part is no failed test either. */
    static RuntimeException refused(String what, String said) {
        Matcher part = NOT_THERE.matcher(said);
        return part.find() ? new TestAbortedException("not offered yet: " + part.group().replaceAll("/\\S+", "…")) : new IllegalStateException(what + ": " + said);
    }

    /** A failure that follows an unanswerable question is no failure of the node. */
    public static Throwable judge(Throwable failure) {
        if (failure instanceof TestAbortedException) {
            return failure;
        }
        if (FIRST.get() != null) {
            return new TestAbortedException("reaches into the broker's objects: " + FIRST.get() + "  [then " + failure + "]");
        }
        if (METER.matcher(String.valueOf(failure.getMessage())).find()) {
            return new TestAbortedException("reads Apache's metrics inside its own process");
        }
        return failure;
    }
}
