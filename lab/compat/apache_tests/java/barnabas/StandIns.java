package barnabas;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import kafka.cluster.Partition;
import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.SharedServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeMetadataQuorumOptions;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponsePartition;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;

import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.BrokerLifecycleManager;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import scala.Option;

/**
 * Objects in place of a broker's and a controller's, which answer from the wire or from the properties file.
 *
 * A question that neither can answer ends the test as skipped (`Unanswerable`).
 */
final class StandIns implements AutoCloseable {
    private static final int APPLIED_AFTER_MS = 100;
    private static final int QUORUM_TIMEOUT_MS = 10_000;

    private final Cluster cluster;
    private final Map<Integer, KafkaBroker> brokers = new HashMap<>();
    private final Map<Integer, ControllerServer> controllers = new HashMap<>();
    private Admin admin;

    StandIns(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public void close() {
        if (admin != null) {
            admin.close(java.time.Duration.ZERO);
            admin = null;
        }
        Mockito.framework().clearInlineMocks();
    }

    private interface Answers {
        Object to(String method, Object[] words) throws Exception;
    }

    private static final Object NONE = new Object();

    /** A stand-in for `kind`: `answers` says NONE to what it cannot answer. */
    private static <T> T standIn(Class<T> kind, Answers answers) {
        return Mockito.mock(kind, Mockito.withSettings().stubOnly().defaultAnswer((InvocationOnMock call) -> {
            String method = call.getMethod().getName();
            switch (method) {
                case "toString": return "stand-in for " + kind.getSimpleName();
                case "hashCode": return System.identityHashCode(call.getMock());
                case "equals": return call.getMock() == call.getArgument(0);
                default:
            }
            Object found = answers.to(method, call.getArguments());
            if (found == NONE) {
                throw Unanswerable.reached(kind.getSimpleName() + "." + method + "()");
            }
            return found;
        }));
    }

    private static KafkaConfig config(barnabas.Node node) {
        return new KafkaConfig(node.properties, false);
    }

    synchronized KafkaBroker broker(barnabas.Node node) {
        return brokers.computeIfAbsent(node.id, ignored -> newBroker(node));
    }

    synchronized void forget(int broker) {
        brokers.remove(broker);
    }

    private KafkaBroker newBroker(barnabas.Node node) {
        KRaftMetadataCache cache = standIn(KRaftMetadataCache.class, (method, words) -> metadata(node, method, words));
        return standIn(BrokerServer.class, (method, words) -> switch (method) {
            case "config" -> config(node);
            case "clusterId" -> cluster.clusterId();
            case "boundPort" -> node.port((ListenerName) words[0]);
            case "socketServer" -> socketServer(node);
            case "metadataCache" -> cache;
            case "sharedServer" -> sharedServer(node);
            case "groupCoordinator" -> groupCoordinator(node);
            case "replicaManager" -> replicaManager(node);
            case "lifecycleManager" -> lifecycleManager();
            case "dataPlaneRequestProcessor" -> standIn(KafkaApis.class, (inner, of) -> inner.equals("metadataCache") ? cache : NONE);
            case "isShutdown" -> !node.isAlive();
            case "brokerState" -> node.isAlive() ? BrokerState.RUNNING : BrokerState.NOT_RUNNING;
            case "awaitShutdown" -> null;
            case "shutdown" -> {
                cluster.shutdownBroker(node.id);
                yield null;
            }
            case "startup" -> {
                cluster.startBroker(node.id);
                yield null;
            }
            default -> NONE;
        });
    }

    private static SocketServer socketServer(barnabas.Node node) {
        return standIn(SocketServer.class, (method, words) -> switch (method) {
            case "boundPort" -> node.port((ListenerName) words[0]);
            case "config" -> config(node);
            default -> NONE;
        });
    }

    /** How far a broker has applied the metadata log: as far as it has fetched it, a moment later. */
    private SharedServer sharedServer(barnabas.Node node) {
        MetadataLoader loader = standIn(MetadataLoader.class, (method, words) -> method.equals("lastAppliedOffset") ? (Object) applied(node.id) : NONE);
        return standIn(SharedServer.class, (method, words) -> method.equals("loader") ? loader : NONE);
    }

    /** The last offset that this node has applied; of a node that the quorum does not name, any. */
    private long applied(int id) throws Exception {
        QuorumInfo quorum = quorum();
        long end = quorum == null ? Long.MAX_VALUE : Stream.concat(quorum.voters().stream(), quorum.observers().stream())
            .filter(replica -> replica.replicaId() == id).mapToLong(QuorumInfo.ReplicaState::logEndOffset).max().orElse(Long.MAX_VALUE);
        Thread.sleep(APPLIED_AFTER_MS);
        return end - 1;
    }

    /** Null: no broker tells, as none is alive or the quorum has no leader. */
    private synchronized QuorumInfo quorum() {
        try {
            if (admin == null) {
                admin = cluster.admin();
            }
            return admin.describeMetadataQuorum(new DescribeMetadataQuorumOptions().timeoutMs(QUORUM_TIMEOUT_MS)).quorumInfo().get();
        } catch (Exception error) {
            return null;
        }
    }

    /** A broker's stand-in is given out once the broker is registered and not fenced. */
    private static BrokerLifecycleManager lifecycleManager() {
        return standIn(BrokerLifecycleManager.class, (method, words) -> method.equals("initialUnfenceFuture") ? CompletableFuture.completedFuture(null) : NONE);
    }

    /** Knows of each partition which broker leads it, and in which epoch. */
    private ReplicaManager replicaManager(barnabas.Node node) {
        return standIn(ReplicaManager.class, (method, words) -> {
            if (!method.equals("onlinePartition")) {
                return NONE;
            }
            TopicPartition which = (TopicPartition) words[0];
            MetadataResponse seen = cluster.answers().get(node.id);
            MetadataResponseTopic topic = seen == null ? null : Seen.topic(seen, which.topic());
            return Option.apply(topic).flatMap(found -> Option.apply(found.partitions().stream()
                .filter(each -> each.partitionIndex() == which.partition() && each.replicaNodes().contains(node.id)).findFirst().map(each -> partition(node, each)).orElse(null)));
        });
    }

    private static Partition partition(barnabas.Node node, MetadataResponsePartition of) {
        return standIn(Partition.class, (method, words) -> switch (method) {
            case "getLeaderEpoch" -> of.leaderEpoch();
            case "leaderReplicaIdOpt" -> of.leaderId() < 0 ? Option.empty() : Option.apply(of.leaderId());
            case "isLeader" -> of.leaderId() == node.id;
            case "leaderLogIfLocal" -> of.leaderId() == node.id ? Option.apply(standIn(UnifiedLog.class, (inner, more) -> NONE)) : Option.empty();
            default -> NONE;
        });
    }

    private static GroupCoordinator groupCoordinator(barnabas.Node node) {
        return standIn(GroupCoordinator.class, (method, words) -> {
            if (!method.equals("groupMetadataTopicConfigs")) {
                return NONE;
            }
            Properties of = new Properties();
            of.put("cleanup.policy", "compact");
            of.put("compression.type", "producer");
            of.put("segment.bytes", node.properties.getOrDefault("offsets.topic.segment.bytes", "104857600"));
            return of;
        });
    }

    private Object metadata(barnabas.Node node, String method, Object[] words) throws Exception {
        MetadataResponse seen = cluster.answers().get(node.id);
        if (seen == null) {
            return NONE;
        }
        switch (method) {
            case "getAllTopics":
                return seen.topicMetadata().stream().map(MetadataResponse.TopicMetadata::topic).collect(Collectors.toSet());
            case "hasAliveBroker":
                return seen.brokersById().containsKey((Integer) words[0]);
            case "getAliveBrokerNodes":
                return List.copyOf(seen.brokers());
            case "topicNamesToIds":
                return seen.data().topics().stream().collect(Collectors.toMap(MetadataResponseTopic::name, MetadataResponseTopic::topicId));
            case "getTopicId": {
                MetadataResponseTopic topic = Seen.topic(seen, (String) words[0]);
                return topic == null ? Uuid.ZERO_UUID : topic.topicId();
            }
            case "numPartitions":
                return Optional.ofNullable(Seen.topic(seen, (String) words[0])).map(topic -> topic.partitions().size());
            case "contains":
                return words[0] instanceof String ? (Object) (Seen.topic(seen, (String) words[0]) != null) : NONE;
            case "getLeaderAndIsr":
                return Optional.ofNullable(Seen.topic(seen, (String) words[0])).flatMap(topic -> leaderAndIsr(topic, (Integer) words[1]));
            default:
                return NONE;
        }
    }

    private static Optional<LeaderAndIsr> leaderAndIsr(MetadataResponseTopic topic, int partition) {
        return topic.partitions().stream().filter(each -> each.partitionIndex() == partition).findFirst()
            .map(each -> new LeaderAndIsr(each.leaderId(), each.leaderEpoch(), each.isrNodes(), LeaderRecoveryState.RECOVERED, 0));
    }

    synchronized ControllerServer controller(barnabas.Node node) {
        return controllers.computeIfAbsent(node.id, ignored -> standIn(ControllerServer.class, (method, words) -> switch (method) {
            case "config" -> config(node);
            case "clusterId" -> cluster.clusterId();
            case "socketServer" -> socketServer(node);
            case "raftManager" -> raftManager();
            case "controller" -> controllerApi();
            default -> NONE;
        }));
    }

    private KafkaRaftManager<?> raftManager() {
        RaftLog log = standIn(RaftLog.class, (method, words) -> {
            if (!method.equals("endOffset")) {
                return NONE;
            }
            QuorumInfo quorum = quorum();
            return new LogOffsetMetadata(quorum == null ? 0 : quorum.highWatermark());
        });
        return standIn(KafkaRaftManager.class, (method, words) -> method.equals("raftLog") ? log : NONE);
    }

    private Controller controllerApi() {
        return standIn(Controller.class, (method, words) -> {
            if (!method.equals("findAllTopicIds")) {
                return NONE;
            }
            MetadataResponse seen = cluster.answers().values().iterator().next();
            Map<String, Uuid> ids = seen.data().topics().stream().collect(Collectors.toMap(MetadataResponseTopic::name, MetadataResponseTopic::topicId));
            return CompletableFuture.completedFuture(ids);
        });
    }

    /** The cluster as Apache's admin client sees it, in the shape of a Metadata answer. */
    synchronized MetadataResponse metadataByAdmin() throws Exception {
        if (admin == null) {
            admin = cluster.admin();
        }
        MetadataResponseData data = new MetadataResponseData();
        for (Node node : admin.describeCluster().nodes().get()) {
            data.brokers().add(new MetadataResponseData.MetadataResponseBroker().setNodeId(node.id()).setHost(node.host()).setPort(node.port()));
        }
        DescribeTopicsResult described = admin.describeTopics(admin.listTopics().names().get());
        described.allTopicNames().get().forEach((name, topic) -> {
            List<MetadataResponsePartition> partitions = topic.partitions().stream().map(StandIns::partition).toList();
            data.topics().add(new MetadataResponseTopic().setName(name).setTopicId(topic.topicId()).setPartitions(partitions));
        });
        return new MetadataResponse(data, (short) 12);
    }

    private static MetadataResponsePartition partition(TopicPartitionInfo of) {
        return new MetadataResponsePartition().setPartitionIndex(of.partition()).setLeaderId(of.leader() == null ? -1 : of.leader().id())
            .setIsrNodes(of.isr().stream().map(Node::id).toList());
    }
}
