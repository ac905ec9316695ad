package barnabas;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/** The properties files that the annotation of a test asks for: the same keys and values as Apache's test kit sets. */
final class Settings {
    private static final String ADMIN = "plain-admin";
    private static final String USER = "plain-user1";
    private static final String JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"" + ADMIN + "\" password=\"" + ADMIN
        + "-secret\" user_" + ADMIN + "=\"" + ADMIN + "-secret\" user_" + USER + "=\"" + USER + "-secret\";";

    private final Layout layout;
    private final Map<Integer, Node> nodes;

    Settings(Layout layout, Map<Integer, Node> nodes) {
        this.layout = layout;
        this.nodes = nodes;
        // A controller's port stands in every node's file.
        layout.controllers().forEach(id -> nodes.get(id).ports.computeIfAbsent(layout.controller().text(), ignored -> Ports.free()));
    }

    private String roles(Node node) {
        boolean broker = layout.brokers().contains(node.id);
        boolean controller = layout.controllers().contains(node.id);
        return broker && controller ? "broker,controller" : broker ? "broker" : "controller";
    }

    private String listeners(String roles) {
        List<String> all = new ArrayList<>();
        if (roles.contains("broker")) {
            all.add(layout.client().text() + "://localhost:0");
        }
        if (roles.contains("controller")) {
            all.add(layout.controller().text() + "://localhost:0");
        }
        return String.join(",", all);
    }

    private boolean votersInFile() {
        return !layout.standalone() && layout.voters().isEmpty();
    }

    void fill(Node node) {
        Map<String, String> p = node.properties;
        p.putAll(layout.properties());
        String roles = roles(node);
        p.put("process.roles", roles);
        p.put("node.id", Integer.toString(node.id));
        p.put("log.dirs", IntStream.range(0, roles.contains("broker") ? layout.disks() : 1).mapToObj(n -> node.place.resolve("data-" + n).toString())
            .collect(Collectors.joining(",")));
        p.putIfAbsent("listener.security.protocol.map", String.format("%s:%s,%s:%s", layout.client().text(), layout.client().protocol(),
            layout.controller().text(), layout.controller().protocol()));
        p.putIfAbsent("listeners", listeners(roles));
        if (roles.contains("broker")) {
            p.putIfAbsent("inter.broker.listener.name", layout.client().text());
        }
        p.putIfAbsent("controller.listener.names", layout.controller().text());
        quorum(p);
        p.putIfAbsent("log.cleaner.dedupe.buffer.size", "2097152");
        p.putIfAbsent("unstable.feature.versions.enable", "true");
        // Apache's kit also sets unstable.api.versions.enable: tests would then send versions that no release offers.
        secure(p);
        p.putAll(layout.ofNode().getOrDefault(node.id, Map.of()));
        node.bind();
    }

    private void quorum(Map<String, String> p) {
        p.put(votersInFile() ? "controller.quorum.voters" : "controller.quorum.bootstrap.servers",
            layout.controllers().stream().map(id -> (votersInFile() ? id + "@" : "") + address(id)).collect(Collectors.joining(",")));
    }

    /** A broker with a file of its own: where the quorum is. */
    void join(Node node) {
        node.properties.put("process.roles", "broker");
        node.properties.put("node.id", Integer.toString(node.id));
        node.properties.remove("broker.id");
        quorum(node.properties);
        node.bind();
    }

    private String address(int controller) {
        return "localhost:" + nodes.get(controller).ports.get(layout.controller().text());
    }

    private void secure(Map<String, String> p) {
        if (layout.client().protocol() != SecurityProtocol.SASL_PLAINTEXT && layout.controller().protocol() != SecurityProtocol.SASL_PLAINTEXT) {
            return;
        }
        p.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
        p.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
        p.putIfAbsent("sasl.mechanism.controller.protocol", "PLAIN");
        p.putIfAbsent("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
        p.putIfAbsent("allow.everyone.if.no.acl.found", "false");
        p.putIfAbsent("super.users", "User:" + ADMIN);
        for (String listener : List.of(layout.client().text(), layout.controller().text())) {
            p.put("listener.name." + listener.toLowerCase() + ".plain.sasl.jaas.config", JAAS);
        }
    }

    List<String> flags(Node node) {
        List<String> flags = new ArrayList<>(List.of("--release-version", layout.version().version()));
        layout.features().forEach((feature, level) -> {
            if (!feature.equals("metadata.version")) {
                flags.addAll(List.of("--feature", feature + "=" + level));
            }
        });
        if (layout.standalone()) {
            // The first controller alone, as in Apache's kit: two of them would be two clusters.
            boolean first = layout.controllers().stream().sorted().findFirst().equals(Optional.of(node.id));
            flags.add(first ? "--standalone" : "--no-initial-controllers");
        } else if (!layout.voters().isEmpty()) {
            boolean first = layout.voters().containsKey(node.id);
            flags.addAll(first ? List.of("--initial-controllers", initial()) : List.of("--no-initial-controllers"));
        }
        return flags;
    }

    private String initial() {
        return layout.voters().entrySet().stream().map(e -> e.getKey() + "@" + address(e.getKey()) + ":" + e.getValue()).collect(Collectors.joining(","));
    }
}
