// What does a decision of Apache's StandardAuthorizer cost with a set of ACLs? As src/decisions.rs, with the same set and names.
// Decisions ACLS TOPICS SECONDS
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.LinkedHashMap;
import java.util.ArrayList;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

public class Decisions {
    record Context(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() { return "SASL"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.SASL_PLAINTEXT; }
        public int requestType() { return 0; }
        public int requestVersion() { return 11; }
        public String clientId() { return "security"; }
        public int correlationId() { return 0; }
    }

    static StandardAcl acl(String line) {
        String[] words = line.split(" ");
        return new StandardAcl(ResourceType.fromString(words[4]), words[6], PatternType.fromString(words[5]), words[1], words[2], AclOperation.fromString(words[3]),
            AclPermissionType.fromString(words[0]));
    }

    static int round(StandardAuthorizer authorizer, Context context, List<List<Action>> asked) {
        int allowed = 0;
        for (List<Action> one : asked)
            if (authorizer.authorize(context, one).get(0) == AuthorizationResult.ALLOWED) allowed++;
        return allowed;
    }

    public static void main(String[] words) throws Exception {
        Map<Uuid, StandardAcl> acls = new LinkedHashMap<>();
        for (String line : Files.readAllLines(Path.of(words[0]))) acls.put(new Uuid(0, acls.size() + 1), acl(line));
        double seconds = Double.parseDouble(words[2]);
        try (StandardAuthorizer authorizer = new StandardAuthorizer()) {
            authorizer.configure(Map.of("super.users", "User:ANONYMOUS"));
            authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
            authorizer.loadSnapshot(acls);
            authorizer.completeInitialLoad();
            Context context = new Context(new KafkaPrincipal("User", "caller"), InetAddress.getByName("127.0.0.1"));
            List<List<Action>> asked = new ArrayList<>();
            // As KafkaApis asks: a denial is not written at the level that is on.
            for (String name : Files.readAllLines(Path.of(words[1])))
                asked.add(List.of(new Action(AclOperation.WRITE, new ResourcePattern(ResourceType.TOPIC, name, PatternType.LITERAL), 1, true, true)));
            int allowed = 0;
            long begun = System.nanoTime(), rounds = 0;
            while (System.nanoTime() - begun < seconds * 1e9) allowed = round(authorizer, context, asked);
            begun = System.nanoTime();
            while (System.nanoTime() - begun < seconds * 1e9) {
                if (round(authorizer, context, asked) != allowed) throw new IllegalStateException("decisions differ");
                rounds++;
            }
            double ns = (double) (System.nanoTime() - begun) / (rounds * asked.size());
            System.out.printf("{\"acls\": %d, \"acl_ns\": %.1f, \"allowed\": %d, \"decisions\": %d}%n", acls.size(), ns, allowed, rounds * asked.size());
        }
    }
}
