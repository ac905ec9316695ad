// Apache's command-line tools in one JVM, one after the other: `class TAB argument…` in, `exit code TAB what it printed, in base64` out.

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

public class Tools {
    // A tool that calls exit ends with this. Some catch it and call exit again: the first code counts.
    static class Ended extends Error {}

    static Integer code;

    static void end(int status, String message) {
        if (code == null) code = status;
        throw new Ended();
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        // Scala keeps the stream that it meets first.
        PrintStream both = new PrintStream(printed, true);
        System.setOut(both);
        System.setErr(both);
        Exit.setExitProcedure(Tools::end);
        Exit.setHaltProcedure(Tools::end);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null;) {
            String[] asked = line.split("\t", -1);
            code = null;
            printed.reset();
            try {
                Class.forName(asked[0]).getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOfRange(asked, 1, asked.length));
            } catch (InvocationTargetException e) {
                if (!(e.getCause() instanceof Ended)) {
                    e.getCause().printStackTrace(both);
                    if (code == null) code = 1;
                }
            }
            both.flush();
            answers.println((code == null ? 0 : code) + "\t" + Base64.getEncoder().encodeToString(printed.toByteArray()));
            answers.flush();
        }
    }
}
