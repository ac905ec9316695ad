package barnabas;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.opentest4j.TestAbortedException;

/**
 * A cluster of Barnabas with the interface that Apache's tests are written against.
 *
 * Ids, roles, listeners and settings are those of Apache's test kit: brokers from 0, controllers from 3000 or the first brokers in combined
 * mode. Each node is a process. Objects of a broker are stand-ins (`StandIns`); what they cannot answer ends the test as skipped.
 */
public final class Cluster implements ClusterInstance {
    private static final long PATIENCE_MS = 60_000;

    private final Layout layout;
    private final ClusterConfig config;
    private final Map<Integer, Node> nodes = new TreeMap<>();
    private final StandIns standIns = new StandIns(this);
    private boolean formatted;
    private boolean started;
    private boolean stopped;

    public Cluster(ClusterConfig config, boolean combined) {
        this(Layout.of(config, combined), config);
    }

    public Cluster(Layout layout, ClusterConfig config) {
        this.layout = layout;
        this.config = config;
    }

    // Life

    public void format() throws IOException {
        if (formatted) {
            return;
        }
        formatted = true;
        Path base = Files.createTempDirectory(Path.of(System.getProperty("barnabas.work")), "cluster-");
        for (List<Integer> ids : List.of(layout.brokers(), layout.controllers())) {
            ids.forEach(id -> nodes.computeIfAbsent(id, ignored -> new Node(id, base.resolve("node-" + id))));
        }
        Settings settings = new Settings(layout, nodes);
        nodes.values().forEach(settings::fill);
        nodes.values().forEach(node -> node.format(clusterId(), settings.flags(node)));
    }

    @Override
    public void start() {
        try {
            launch();
            waitForReadyBrokers();
            checkOffered();
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException("the cluster does not start", error);
        }
    }

    /** Ends the test as skipped if it needs a part that is refused nowhere else. */
    public void checkOffered() {
        if (layout.properties().getOrDefault("remote.log.storage.system.enable", "false").equals("true")) {
            throw new TestAbortedException("not offered yet: tiered storage");
        }
    }

    @Override
    public boolean started() {
        return started;
    }

    @Override
    public void stop() {
        stopped = true;
        nodes.values().forEach(Node::kill);
    }

    @Override
    public boolean stopped() {
        return stopped;
    }

    /** Formats and starts every node; nothing is waited for. */
    public void launch() throws IOException {
        format();
        started = true;
        nodes.values().forEach(Node::start);
    }

    /** A broker more, with a properties file that the test wrote; where the quorum is, is put in. It is not started. */
    public KafkaBroker add(int id, Map<String, String> properties) {
        Settings settings = new Settings(layout, nodes);
        Node node = new Node(id, nodes.values().iterator().next().place.resolveSibling("node-" + id + "-" + nodes.size()));
        Node before = nodes.put(id, node);
        if (before != null) {
            before.stop();
            standIns.forget(id);
        }
        node.properties.putAll(properties);
        settings.join(node);
        List<String> flags = new ArrayList<>(settings.flags(node));
        flags.add("--ignore-formatted");
        node.format(clusterId(), flags);
        return standIns.broker(node);
    }

    public void stopNode(int id) {
        nodes.get(id).stop();
    }

    /** The end of a test: a node that ended by itself fails it. */
    public void finish() throws IOException {
        List<String> deaths = nodes.values().stream().map(Node::death).filter(word -> word != null).toList();
        stop();
        standIns.close();
        if (System.getProperty("barnabas.keep") == null && !nodes.isEmpty()) {
            org.apache.kafka.common.utils.Utils.delete(nodes.values().iterator().next().place.getParent().toFile());
        }
        if (!deaths.isEmpty()) {
            throw new AssertionError(String.join("; ", deaths));
        }
    }

    @Override
    public void shutdownBroker(int id) {
        broker(id).stop();
    }

    @Override
    public void startBroker(int id) {
        broker(id).start();
        try {
            until(() -> seenByAll(answer -> answer.brokersById().containsKey(id)), "broker " + id + " is back");
            checkOffered();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    Node broker(int id) {
        Node node = nodes.get(id);
        if (node == null || !node.isBroker()) {
            throw new IllegalArgumentException("Unknown brokerId " + id);
        }
        return node;
    }

    @Override
    public Map<String, Object> setClientSaslConfig(Map<String, Object> configs) {
        return config == null ? configs : ClusterInstance.super.setClientSaslConfig(configs);
    }

    // What it is

    @Override
    public Type type() {
        return layout.brokers().containsAll(layout.controllers()) ? Type.CO_KRAFT : Type.KRAFT;
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public String clusterId() {
        return layout.clusterId();
    }

    @Override
    public ListenerName clientListener() {
        return layout.client().name();
    }

    @Override
    public ListenerName controllerListenerName() {
        return layout.controller().name();
    }

    @Override
    public Set<Integer> controllerIds() {
        return ids(Node::isController);
    }

    @Override
    public Set<Integer> brokerIds() {
        return ids(Node::isBroker);
    }

    @Override
    public String bootstrapServers() {
        return addresses(Node::isBroker, clientListener());
    }

    @Override
    public String bootstrapControllers() {
        return addresses(Node::isController, controllerListenerName());
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return nodes.values().stream().filter(Node::isBroker).map(node -> node.ports.get(clientListener().value())).toList();
    }

    @Override
    public List<Integer> controllerBoundPorts() {
        return nodes.values().stream().filter(Node::isController).map(node -> node.ports.get(controllerListenerName().value())).toList();
    }

    @Override
    public Set<GroupProtocol> supportedGroupProtocols() {
        String named = layout.properties().getOrDefault("group.coordinator.rebalance.protocols", "classic,consumer,streams");
        return named.contains("consumer") ? Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER) : Set.of(GroupProtocol.CLASSIC);
    }

    private Set<Integer> ids(Predicate<Node> which) {
        return nodes.values().stream().filter(which).map(node -> node.id).collect(Collectors.toSet());
    }

    private String addresses(Predicate<Node> which, ListenerName listener) {
        return nodes.values().stream().filter(which).map(node -> "localhost:" + node.ports.get(listener.value())).collect(Collectors.joining(","));
    }

    // Stand-ins for objects

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        return nodes.values().stream().filter(Node::isBroker).collect(Collectors.toMap(node -> node.id, standIns::broker));
    }

    @Override
    public Map<Integer, KafkaBroker> aliveBrokers() {
        return nodes.values().stream().filter(node -> node.isBroker() && node.isAlive()).collect(Collectors.toMap(node -> node.id, standIns::broker));
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
        return nodes.values().stream().filter(Node::isController).collect(Collectors.toMap(node -> node.id, standIns::controller));
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }

    @Override
    public List<Authorizer> authorizers() {
        throw Unanswerable.reached("authorizers()");
    }

    // Waiting

    @Override
    public void waitForReadyBrokers() throws InterruptedException {
        int wanted = brokerIds().size();
        until(() -> seenByAll(answer -> answer.brokers().size() == wanted), wanted + " brokers are registered and not fenced");
    }

    @Override
    public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
        until(() -> seenByAll(answer -> isComplete(Seen.topic(answer, topic), partitions)), topic + " has " + partitions + " partitions with leaders");
    }

    private static boolean isComplete(MetadataResponseTopic topic, int partitions) {
        return topic != null && topic.partitions().size() == partitions && topic.partitions().stream().allMatch(each -> each.leaderId() >= 0);
    }

    @Override
    public void waitTopicDeletion(String topic) throws InterruptedException {
        until(() -> seenByAll(answer -> Seen.topic(answer, topic) == null), topic + " is gone");
    }

    @Override
    public void ensureConsistentMetadata() throws InterruptedException {
        Set<String> shapes = new HashSet<>();
        until(() -> {
            shapes.clear();
            seenByAll(answer -> shapes.add(answer.data().topics().toString()) || true);
            return shapes.size() <= 1;
        }, "all brokers have the same topics");
    }

    @Override
    public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> controllers) throws InterruptedException {
        ensureConsistentMetadata();
    }

    @Override
    public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries) throws InterruptedException {
        try (Admin admin = admin()) {
            until(() -> {
                Set<AccessControlEntry> found = admin.describeAcls(filter).values().get().stream().map(AclBinding::entry).collect(Collectors.toSet());
                return found.equals(new HashSet<>(entries));
            }, "the ACLs of " + filter + " are " + entries);
        }
        Thread.sleep(300);
    }

    /** What each running broker's answer says, where its listener takes requests without authentication. */
    Map<Integer, MetadataResponse> answers() throws IOException {
        Map<Integer, MetadataResponse> found = new HashMap<>();
        for (Node node : nodes.values()) {
            if (node.isBroker() && node.isAlive()) {
                found.put(node.id, Seen.ask(node.port(clientListener())));
            }
        }
        return found;
    }

    private boolean seenByAll(Predicate<MetadataResponse> wanted) throws Exception {
        List<String> deaths = nodes.values().stream().map(Node::death).filter(word -> word != null).toList();
        if (!deaths.isEmpty()) {
            throw new AssertionError(String.join("; ", deaths));
        }
        if (layout.client().protocol() != SecurityProtocol.PLAINTEXT) {
            return seenByAdmin(wanted);
        }
        List<MetadataResponse> seen = new ArrayList<>(answers().values());
        return seen.stream().allMatch(wanted);
    }

    /** Behind authentication Apache's client asks; it does not choose the broker, so a moment is added. */
    private boolean seenByAdmin(Predicate<MetadataResponse> wanted) throws Exception {
        boolean seen = wanted.test(standIns.metadataByAdmin());
        if (seen) {
            Thread.sleep(300);
        }
        return seen;
    }

    interface Asked {
        boolean holds() throws Exception;
    }

    static void until(Asked asked, String what) throws InterruptedException {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        Exception last = null;
        while (System.currentTimeMillis() < deadline) {
            try {
                if (asked.holds()) {
                    return;
                }
            } catch (InterruptedException | TestAbortedException error) {
                throw error;
            } catch (Exception error) {
                last = error;
            }
            Thread.sleep(30);
        }
        throw new AssertionError("not within " + PATIENCE_MS + " ms: " + what + (last == null ? "" : " (" + last + ")"));
    }
}
