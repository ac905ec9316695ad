package org.apache.kafka.common.test;

import barnabas.Cluster;
import barnabas.Layout;
import barnabas.Unanswerable;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * The kit's name and methods, with a cluster of Barnabas behind them: for tests that start a kit themselves, as those of Kafka Streams do.
 *
 * The class stands earlier on the class path than Apache's own. Nodes, ids and settings are those of the builder.
 */
public class KafkaClusterTestKit implements AutoCloseable {
    private final TestKitNodes nodes;
    private final Cluster cluster;
    private final MockFaultHandler fatal = new MockFaultHandler("fatal");
    private final MockFaultHandler nonFatal = new MockFaultHandler("non-fatal");

    private KafkaClusterTestKit(TestKitNodes nodes, Cluster cluster) {
        this.nodes = nodes;
        this.cluster = cluster;
    }

    /** Collects what the cluster is to be. */
    public static class Builder {
        private final TestKitNodes nodes;
        private final Map<String, String> properties = new HashMap<>();
        private boolean standalone;
        private Map<Integer, Uuid> voters = Map.of();

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String key, Object value) {
            properties.put(key, value.toString());
            return this;
        }

        public Builder setStandalone(boolean standalone) {
            this.standalone = standalone;
            return this;
        }

        public Builder setInitialVoterSet(Map<Integer, Uuid> voters) {
            this.voters = Map.copyOf(voters);
            return this;
        }

        public Builder setDeleteOnClose(boolean ignored) {
            return this;
        }

        public KafkaClusterTestKit build() {
            return new KafkaClusterTestKit(nodes, new Cluster(Layout.of(nodes, properties, standalone, voters), null));
        }
    }

    public void format() throws Exception {
        cluster.format();
    }

    public void startup() {
        try {
            cluster.launch();
            cluster.waitForReadyBrokers();
            cluster.checkOffered();
        } catch (java.io.IOException | InterruptedException error) {
            throw new IllegalStateException("the cluster does not start", error);
        }
    }

    public void waitForReadyBrokers() throws InterruptedException {
        cluster.waitForReadyBrokers();
    }

    public Admin admin() {
        return admin(Map.of());
    }

    public Admin admin(Map<String, Object> configs) {
        return admin(configs, false);
    }

    public Admin admin(Map<String, Object> configs, boolean usingControllers) {
        return cluster.admin(configs, usingControllers);
    }

    public String bootstrapServers() {
        return cluster.bootstrapServers();
    }

    public String bootstrapControllers() {
        return cluster.bootstrapControllers();
    }

    public Map<Integer, ControllerServer> controllers() {
        return cluster.controllers();
    }

    public Map<Integer, BrokerServer> brokers() {
        return cluster.brokers().entrySet().stream().collect(Collectors.toMap(Map.Entry::getKey, entry -> (BrokerServer) entry.getValue()));
    }

    public Controller waitForActiveController() {
        throw Unanswerable.reached("KafkaClusterTestKit.waitForActiveController()");
    }

    public Map<Integer, KafkaRaftManager<ApiMessageAndVersion>> raftManagers() {
        throw Unanswerable.reached("KafkaClusterTestKit.raftManagers()");
    }

    public TestKitNodes nodes() {
        return nodes;
    }

    public MockFaultHandler fatalFaultHandler() {
        return fatal;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return nonFatal;
    }

    @Override
    public void close() throws Exception {
        cluster.finish();
    }
}
