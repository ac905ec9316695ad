package barnabas;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.TestKitNodes;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.TestKitDefaults;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * What a test asks of a cluster, whichever of Apache's ways it asked in.
 *
 * @param features the level of each feature but metadata.version
 * @param voters   the controllers' directory ids where the quorum begins with them in its log; empty otherwise
 */
public record Layout(String clusterId, List<Integer> brokers, List<Integer> controllers, int disks, Listener client, Listener controller,
                     Map<String, String> properties, Map<Integer, Map<String, String>> ofNode, MetadataVersion version, Map<String, Short> features,
                     boolean standalone, Map<Integer, Uuid> voters) {

    /** A listener's name with its protocol. */
    public record Listener(ListenerName name, SecurityProtocol protocol) {
        String text() {
            return name.value();
        }
    }

    static Layout of(ClusterConfig config, boolean combined) {
        int first = combined ? TestKitDefaults.BROKER_ID_OFFSET : TestKitDefaults.CONTROLLER_ID_OFFSET;
        Map<String, Short> features = config.features().entrySet().stream().collect(Collectors.toMap(e -> e.getKey().featureName(), Map.Entry::getValue));
        return new Layout(Uuid.randomUuid().toString(), IntStream.range(0, config.numBrokers()).boxed().toList(),
            IntStream.range(first, first + config.numControllers()).boxed().toList(), config.numDisksPerBroker(),
            new Listener(config.brokerListenerName(), config.brokerSecurityProtocol()),
            new Listener(config.controllerListenerName(), config.controllerSecurityProtocol()), config.serverProperties(), config.perServerOverrideProperties(),
            config.metadataVersion(), features, config.standalone(), Map.of());
    }

    public static Layout of(TestKitNodes nodes, Map<String, String> properties, boolean standalone, Map<Integer, Uuid> voters) {
        Map<Integer, Map<String, String>> ofNode = new HashMap<>();
        nodes.controllerNodes().values().forEach(node -> ofNode.put(node.id(), node.propertyOverrides()));
        nodes.brokerNodes().values().forEach(node -> ofNode.put(node.id(), node.propertyOverrides()));
        int disks = nodes.brokerNodes().values().stream().mapToInt(node -> node.logDataDirectories().size()).max().orElse(1);
        MetadataVersion version = nodes.bootstrapMetadata().metadataVersion();
        return new Layout(nodes.clusterId(), List.copyOf(nodes.brokerNodes().keySet()), List.copyOf(nodes.controllerNodes().keySet()), disks,
            new Listener(nodes.brokerListenerName(), nodes.brokerListenerProtocol()),
            new Listener(nodes.controllerListenerName(), nodes.controllerListenerProtocol()), properties, ofNode, version, features(nodes, version), standalone, voters);
    }

    /** The levels that differ from those that metadata.version brings along. */
    private static Map<String, Short> features(TestKitNodes nodes, MetadataVersion version) {
        Map<String, Short> found = new HashMap<>();
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            short level = nodes.bootstrapMetadata().featureLevel(feature.featureName());
            if (level != 0 && level != feature.defaultLevel(version)) {
                found.put(feature.featureName(), level);
            }
        }
        return found;
    }
}
