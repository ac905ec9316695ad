// Everything that a client can see, as sorted lines: what two brokers are compared by.

import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.quota.ClientQuotaFilter;

class Snapshot {
    static Admin admin() {
        return Dirs.admin;
    }

    static String write(String file, String peer) throws Exception {
        long deadline = System.currentTimeMillis() + 30_000;
        while (true) {
            try {
                TreeMap<String, String> lines = take(peer);
                try (PrintWriter out = new PrintWriter(file, StandardCharsets.UTF_8)) {
                    lines.forEach((key, value) -> out.println(key + "\t" + value));
                }
                return lines.size() + " lines";
            } catch (KafkaException | java.util.concurrent.ExecutionException e) {
                // A broker that has just started leads nothing yet.
                if (System.currentTimeMillis() > deadline) throw e;
                Thread.sleep(200);
            }
        }
    }

    static TreeMap<String, String> take(String peer) throws Exception {
        TreeMap<String, String> lines = new TreeMap<>();
        List<TopicPartition> partitions = topics(lines);
        configs(lines);
        offsets(lines, partitions);
        records(lines, partitions);
        producers(lines, partitions);
        groups(lines);
        features(lines);
        places(lines);
        if (!peer.equals("barnabas")) kafkaOnly(lines);
        return lines;
    }

    static List<TopicPartition> topics(TreeMap<String, String> lines) throws Exception {
        List<TopicPartition> partitions = new ArrayList<>();
        lines.put("cluster", admin().describeCluster().clusterId().get());
        for (TopicDescription d : admin().describeTopics(admin().listTopics(new ListTopicsOptions().listInternal(true)).names().get()).allTopicNames().get().values()) {
            lines.put("topic " + d.name(), d.topicId() + " " + d.partitions().size() + (d.isInternal() ? " internal" : ""));
            d.partitions().forEach(p -> {
                if (p.leader() == null || p.leader().isEmpty()) throw new KafkaException(d.name() + " has no leader");
                partitions.add(new TopicPartition(d.name(), p.partition()));
            });
        }
        return partitions;
    }

    static void configs(TreeMap<String, String> lines) throws Exception {
        List<ConfigResource> of = new ArrayList<>(List.of(new ConfigResource(ConfigResource.Type.BROKER, "1"), new ConfigResource(ConfigResource.Type.BROKER, "")));
        for (String name : admin().listTopics(new ListTopicsOptions().listInternal(true)).names().get()) of.add(new ConfigResource(ConfigResource.Type.TOPIC, name));
        for (Map.Entry<ConfigResource, Config> found : admin().describeConfigs(of).all().get().entrySet())
            for (ConfigEntry e : found.getValue().entries()) {
                String source = e.source().name();
                if (source.startsWith("DYNAMIC")) lines.put("config " + found.getKey().type() + " " + found.getKey().name() + " " + e.name(), e.value() + " " + source);
            }
    }

    static Map<TopicPartition, Long> list(List<TopicPartition> partitions, OffsetSpec spec, IsolationLevel level) throws Exception {
        return admin().listOffsets(partitions.stream().collect(Collectors.toMap(p -> p, p -> spec)), new ListOffsetsOptions(level)).all().get()
            .entrySet().stream().collect(Collectors.toMap(Map.Entry::getKey, e -> e.getValue().offset()));
    }

    static void offsets(TreeMap<String, String> lines, List<TopicPartition> partitions) throws Exception {
        Map<TopicPartition, Long> start = list(partitions, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED);
        Map<TopicPartition, Long> end = list(partitions, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED);
        Map<TopicPartition, Long> stable = list(partitions, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED);
        for (TopicPartition p : partitions) lines.put("offsets " + p, start.get(p) + " " + stable.get(p) + " " + end.get(p));
        for (long at : new long[] {0, Fill.PAST + 30_000, Fill.PAST + 99_000, Fill.PAST + 1_050_000, Fill.PAST + 2_000_500}) {
            Map<TopicPartition, OffsetSpec> ask = partitions.stream().filter(p -> !p.topic().startsWith("__")).collect(Collectors.toMap(p -> p, p -> OffsetSpec.forTimestamp(at)));
            admin().listOffsets(ask).all().get().forEach((p, r) -> lines.put("time " + p + " " + at, r.offset() + " " + r.timestamp() + " " + r.leaderEpoch().orElse(-1)));
        }
    }

    /** All records of some partitions, up to the ends as this consumer sees them. */
    static Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> read(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> partitions) {
        Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> found = new HashMap<>();
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        Set<TopicPartition> missing = new HashSet<>(partitions);
        long deadline = System.currentTimeMillis() + 60_000;
        while (!missing.isEmpty()) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(20)))
                found.computeIfAbsent(new TopicPartition(record.topic(), record.partition()), p -> new ArrayList<>()).add(record);
            missing.removeIf(p -> consumer.position(p) >= ends.get(p));
            consumer.pause(partitions.stream().filter(p -> !missing.contains(p)).toList());
            if (System.currentTimeMillis() > deadline) throw new IllegalStateException(missing + " is not read to the end");
        }
        return found;
    }

    static void records(TreeMap<String, String> lines, List<TopicPartition> partitions) throws Exception {
        MessageDigest sha = MessageDigest.getInstance("SHA-256");
        try (KafkaConsumer<byte[], byte[]> all = Fill.consumer(Map.of("isolation.level", "read_uncommitted", "exclude.internal.topics", "false"));
             KafkaConsumer<byte[], byte[]> committed = Fill.consumer(Map.of("isolation.level", "read_committed", "exclude.internal.topics", "false"))) {
            read(all, partitions).forEach((p, records) -> {
                for (ConsumerRecord<byte[], byte[]> r : records) {
                    StringBuilder shown = new StringBuilder().append(r.timestamp()).append(' ').append(r.timestampType()).append(" e").append(r.leaderEpoch().orElse(-1))
                        .append(' ').append(shown(r.key(), sha)).append(' ').append(shown(r.value(), sha));
                    for (Header h : r.headers()) shown.append(' ').append(h.key()).append('=').append(shown(h.value(), sha));
                    lines.put("record " + p + " " + r.offset(), shown.toString());
                }
            });
            read(committed, partitions).forEach((p, records) -> {
                for (ConsumerRecord<byte[], byte[]> r : records) lines.put("committed " + p + " " + r.offset(), "seen");
            });
        }
    }

    static String shown(byte[] bytes, MessageDigest sha) {
        if (bytes == null) return "null";
        return bytes.length <= 24 ? "'" + HexFormat.of().formatHex(bytes) : "#" + HexFormat.of().formatHex(sha.digest(bytes), 0, 8);
    }

    static void producers(TreeMap<String, String> lines, List<TopicPartition> partitions) throws Exception {
        admin().describeProducers(partitions).all().get().forEach((p, state) -> {
            for (ProducerState s : state.activeProducers())
                lines.put("producer " + p + " " + s.producerId(), "epoch " + s.producerEpoch() + " sequence " + s.lastSequence() + " at " + s.lastTimestamp()
                    + " coordinator " + s.coordinatorEpoch().orElse(-1) + " open " + s.currentTransactionStartOffset().orElse(-1));
        });
    }

    static void groups(TreeMap<String, String> lines) throws Exception {
        for (GroupListing group : admin().listGroups().all().get()) {
            lines.put("group " + group.groupId(), group.protocol() + " " + group.groupState().map(String::valueOf).orElse("?"));
            admin().listConsumerGroupOffsets(group.groupId()).partitionsToOffsetAndMetadata().get().forEach((p, at) ->
                lines.put("position " + group.groupId() + " " + p, at == null ? "none" : at.offset() + " e" + at.leaderEpoch().orElse(-1) + " '" + at.metadata() + "'"));
        }
    }

    static void features(TreeMap<String, String> lines) throws Exception {
        admin().describeFeatures().featureMetadata().get().finalizedFeatures().forEach((name, range) -> {
            if (range.maxVersionLevel() > 0) lines.put("feature " + name, "" + range.maxVersionLevel());
        });
    }

    static void places(TreeMap<String, String> lines) throws Exception {
        for (Map.Entry<String, LogDirDescription> dir : admin().describeLogDirs(List.of(1)).allDescriptions().get().get(1).entrySet()) {
            if (dir.getValue().error() != null) lines.put("directory " + dir.getKey(), "" + dir.getValue().error());
            for (TopicPartition p : dir.getValue().replicaInfos().keySet()) lines.put("place " + p, dir.getKey());
        }
    }

    /** What Barnabas does not answer yet, but has to keep for the next broker. */
    static void kafkaOnly(TreeMap<String, String> lines) throws Exception {
        admin().describeClientQuotas(ClientQuotaFilter.all()).entities().get().forEach((who, what) -> lines.put("kept quota " + who, "" + new TreeMap<>(what)));
        admin().describeUserScramCredentials().all().get().forEach((who, what) -> lines.put("kept scram " + who, "" + what.credentialInfos()));
        lines.put("kept acls", "" + new TreeSet<>(admin().describeAcls(AclBindingFilter.ANY).values().get().stream().map(String::valueOf).toList()));
        admin().listTransactions().all().get().forEach(t -> lines.put("kept transaction " + t.transactionalId(), t.producerId() + " " + t.state()));
    }
}
