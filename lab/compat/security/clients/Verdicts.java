// Answers cases on standard input with Apache Kafka's own StandardAuthorizer: a line for each question. verdicts.py describes the lines.

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
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

public class Verdicts {
    record Caller(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() { return "SASL"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.SASL_SSL; }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return "c"; }
        public int correlationId() { return 0; }
    }

    // One set of ACLs: half of them come as a snapshot, the others one by one. The number of an ACL is its id.
    static class Judge {
        final StandardAuthorizer authorizer = new StandardAuthorizer();
        final Map<Uuid, StandardAcl> snapshot = new HashMap<>();
        final Map<Uuid, StandardAcl> later = new HashMap<>();
        final Map<StandardAcl, Integer> numbers = new HashMap<>();
        boolean isLoaded;

        Judge(String superUsers, String allowEveryone) {
            authorizer.configure(Map.of("node.id", "1", "super.users", superUsers, "allow.everyone.if.no.acl.found", allowEveryone));
            authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        }

        void add(String[] words) {
            StandardAcl acl = new StandardAcl(ResourceType.fromCode(Byte.parseByte(words[1])), words[2], PatternType.fromCode(Byte.parseByte(words[3])), words[4], words[5],
                    AclOperation.fromCode(Byte.parseByte(words[6])), AclPermissionType.fromCode(Byte.parseByte(words[7])));
            int number = numbers.size();
            if (numbers.put(acl, number) != null) throw new IllegalArgumentException("twice in one set: " + acl);
            (number % 2 == 0 ? snapshot : later).put(new Uuid(0, number + 16), acl);
        }

        void loaded() {
            if (isLoaded) return;
            authorizer.loadSnapshot(snapshot);
            authorizer.completeInitialLoad();
            later.forEach(authorizer::addAcl);
            isLoaded = true;
        }

        // The rule that the class writes to its log: `data.findAclRule` is private.
        String why(Caller caller, Action action) throws Exception {
            Object data = field(StandardAuthorizer.class, "data").get(authorizer);
            if (((Set<?>) field(data.getClass(), "superUsers").get(data)).contains(caller.principal().toString())) return "super user";
            Object rule = findAclRule.invoke(data, Set.of(caller.principal(), new KafkaPrincipal("User", "*")), caller.clientAddress().getHostAddress(), action);
            if (!rule.getClass().getSimpleName().equals("MatchingAclRule")) return "default";
            Method acl = rule.getClass().getDeclaredMethod("acl");
            acl.setAccessible(true);
            return numbers.get(acl.invoke(rule)).toString();
        }
    }

    static Method findAclRule;

    static Field field(Class<?> of, String name) throws Exception {
        Field field = of.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    static Caller caller(String principal, String host) throws Exception {
        int colon = principal.indexOf(':');
        // Not by a name server: these are addresses.
        return new Caller(new KafkaPrincipal(principal.substring(0, colon), principal.substring(colon + 1)), InetAddress.getByName(host));
    }

    // What the class throws is its answer.
    static String answer(Judge judge, String[] words) throws Exception {
        AclOperation operation = AclOperation.fromCode(Byte.parseByte(words[3]));
        ResourceType type = ResourceType.fromCode(Byte.parseByte(words[4]));
        Caller caller = caller(words[1], words[2]);
        try {
            if (words[0].equals("any")) return judge.authorizer.authorizeByResourceType(caller, operation, type).toString();
            Action action = new Action(operation, new ResourcePattern(type, words[5], PatternType.LITERAL), 1, false, false);
            String answer = judge.authorizer.authorize(caller, List.of(action)).get(0).toString();
            return words[0].equals("why") ? answer + "\t" + judge.why(caller, action) : answer;
        } catch (RuntimeException e) {
            return e.getClass().getSimpleName();
        }
    }

    public static void main(String[] args) throws Exception {
        findAclRule = Class.forName("org.apache.kafka.metadata.authorizer.StandardAuthorizerData").getDeclaredMethod("findAclRule", Set.class, String.class, Action.class);
        findAclRule.setAccessible(true);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter answers = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        Judge judge = null;
        for (String line; (line = lines.readLine()) != null;) {
            String[] words = line.split("\t", -1);
            for (int i = 0; i < words.length; i++) words[i] = unescaped(words[i]);
            switch (words[0]) {
                case "set" -> judge = new Judge(words[1], words[2]);
                case "acl" -> judge.add(words);
                default -> {
                    judge.loaded();
                    answers.write(answer(judge, words) + "\n");
                }
            }
        }
        answers.flush();
    }

    // `%XX` stands for a byte.
    static String unescaped(String word) {
        if (word.indexOf('%') < 0) return word;
        byte[] given = word.getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (int at = 0; at < given.length; at++) {
            if (given[at] == '%') {
                bytes.write(Integer.parseInt(new String(given, at + 1, 2, StandardCharsets.US_ASCII), 16));
                at += 2;
            } else {
                bytes.write(given[at]);
            }
        }
        return bytes.toString(StandardCharsets.UTF_8);
    }
}
