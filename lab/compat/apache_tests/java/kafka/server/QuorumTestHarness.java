package kafka.server;

import barnabas.Cluster;
import barnabas.Layout;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import kafka.utils.Logging;
import kafka.utils.TestInfoUtils$;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.TransactionVersion;
import org.apache.kafka.server.fault.MockFaultHandler;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.params.provider.Arguments;
import scala.Option;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The base of Apache's older integration tests, by its name and methods, with processes of Barnabas behind it.
 *
 * One controller, node 1000, starts before each test; `createBroker` answers with a stand-in for a process. Subclasses were compiled
 * against Apache's class of this name, so the signatures are Scala's.
 */
@Tag("integration")
public abstract class QuorumTestHarness implements Logging {
    private static final int CONTROLLER = 1000;

    private final MockFaultHandler faults = new MockFaultHandler("quorumTestHarnessFaultHandler");
    private final QuorumTestHarnessFaultHandlerFactory faultFactory = new QuorumTestHarnessFaultHandlerFactory(faults);
    private String logIdent = "";
    private TestInfo testInfo;
    private Cluster cluster;
    private QuorumImplementation implementation;

    public static Stream<Arguments> getTestGroupProtocolParametersAll() {
        return QuorumTestHarness$.MODULE$.getTestGroupProtocolParametersAll();
    }

    public static Stream<Arguments> getTestGroupProtocolParametersClassicGroupProtocolOnly() {
        return QuorumTestHarness$.MODULE$.getTestGroupProtocolParametersClassicGroupProtocolOnly();
    }

    public static Stream<Arguments> getTestGroupProtocolParametersConsumerGroupProtocolOnly() {
        return QuorumTestHarness$.MODULE$.getTestGroupProtocolParametersConsumerGroupProtocolOnly();
    }

    public static void verifyNoUnexpectedThreads(String context) {
    }

    @Override
    public String logIdent() {
        return logIdent;
    }

    @Override
    public void logIdent_$eq(String ident) {
        logIdent = ident;
    }

    // What subclasses override

    public SecurityProtocol controllerListenerSecurityProtocol() {
        return SecurityProtocol.PLAINTEXT;
    }

    public Seq<SecurityProtocol> extraControllerSecurityProtocols() {
        return CollectionConverters.asScala(List.<SecurityProtocol>of()).toSeq();
    }

    public Seq<Properties> kraftControllerConfigs(TestInfo info) {
        return CollectionConverters.asScala(List.of(new Properties())).toSeq();
    }

    public MetadataVersion metadataVersion() {
        return MetadataVersion.latestTesting();
    }

    public void addFormatterSettings(Formatter formatter) {
    }

    // What subclasses ask

    public Option<GroupProtocol> maybeGroupProtocolSpecified() {
        return TestInfoUtils$.MODULE$.maybeGroupProtocolSpecified(testInfo);
    }

    public GroupProtocol groupProtocolFromTestParameters() {
        return maybeGroupProtocolSpecified().get();
    }

    public QuorumImplementation implementation() {
        return implementation;
    }

    public void implementation_$eq(QuorumImplementation to) {
        implementation = to;
    }

    public ControllerServer controllerServer() {
        return cluster.controllers().get(controllerId());
    }

    public Seq<ControllerServer> controllerServers() {
        return CollectionConverters.asScala(List.of(controllerServer())).toSeq();
    }

    public QuorumTestHarnessFaultHandlerFactory faultHandlerFactory() {
        return faultFactory;
    }

    public MockFaultHandler faultHandler() {
        return faults;
    }

    // Life

    @BeforeEach
    public void setUp(TestInfo info) {
        testInfo = info;
        Map<String, String> properties = new HashMap<>();
        properties.put("log.segment.delete.delay.ms", "1000");
        kraftControllerConfigs(info).head().forEach((key, value) -> properties.put(key.toString(), value.toString()));
        boolean second = TestInfoUtils$.MODULE$.isTransactionV2Enabled(info);
        short level = (second ? TransactionVersion.TV_2 : TransactionVersion.TV_1).featureLevel();
        int id = Integer.parseInt(properties.getOrDefault("node.id", Integer.toString(CONTROLLER)));
        cluster = new Cluster(new Layout(Uuid.randomUuid().toString(), List.of(), List.of(id), 1,
            new Layout.Listener(ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT), SecurityProtocol.PLAINTEXT),
            new Layout.Listener(new ListenerName("CONTROLLER"), controllerListenerSecurityProtocol()), properties, Map.of(), metadataVersion(),
            Map.of("transaction.version", level), false, Map.of()), null);
        implementation = new Processes();
        try {
            cluster.launch();
        } catch (java.io.IOException error) {
            throw new IllegalStateException("the controller does not start", error);
        }
    }

    @AfterEach
    public void tearDown() {
        try {
            if (cluster != null) {
                cluster.finish();
            }
        } catch (java.io.IOException error) {
            throw new IllegalStateException("the cluster is not removed", error);
        }
    }

    public KafkaBroker createBroker(KafkaConfig config, Time time, boolean startup, Option<String> threadNamePrefix) {
        return implementation.createBroker(config, time, startup, threadNamePrefix);
    }

    public Time createBroker$default$2() {
        return Time.SYSTEM;
    }

    public boolean createBroker$default$3() {
        return true;
    }

    public Option<String> createBroker$default$4() {
        return Option.empty();
    }

    public void shutdownKRaftController() {
        cluster.stopNode(controllerId());
    }

    private int controllerId() {
        return cluster.controllerIds().iterator().next();
    }

    /** Brokers as processes. */
    private final class Processes implements QuorumImplementation {
        @Override
        public KafkaBroker createBroker(KafkaConfig config, Time time, boolean startup, Option<String> threadNamePrefix) {
            Map<String, String> properties = new HashMap<>();
            config.originals().forEach((key, value) -> {
                if (value != null) {
                    properties.put(key, value.toString());
                }
            });
            KafkaBroker broker = cluster.add(config.brokerId(), properties);
            if (startup) {
                broker.startup();
            }
            return broker;
        }

        @Override
        public Time createBroker$default$2() {
            return Time.SYSTEM;
        }

        @Override
        public boolean createBroker$default$3() {
            return true;
        }

        @Override
        public Option<String> createBroker$default$4() {
            return Option.empty();
        }

        @Override
        public void shutdown() {
            cluster.stop();
        }
    }
}
