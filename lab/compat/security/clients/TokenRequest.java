// Apache's client with tokens of an issuer: the path of its settings in, one line out. `ok TAB the topics that it may see`, or `no TAB the deepest reason`.

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;

public class TokenRequest {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String path; (path = lines.readLine()) != null;) {
            // A LoginException has a stack trace in its message.
            System.out.println(attempt(path).lines().findFirst().orElse(""));
            System.out.flush();
        }
    }

    static String attempt(String path) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(path)) {
            settings.load(file);
        }
        try (Admin admin = Admin.create(settings)) {
            return "ok\t" + String.join(" ", new TreeSet<>(admin.listTopics().names().get()));
        } catch (Throwable why) {
            while (why.getCause() != null) why = why.getCause();
            return "no\t" + why.getClass().getSimpleName() + ": " + why.getMessage();
        }
    }
}
