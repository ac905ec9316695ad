// What is written at each station: one topic for each thing that could be lost on the way.

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

class Fill {
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static final List<String> COMPACTED = List.of("compacted", "compacted-txn", "compact-delete");
    static final int MANY = 40;
    static final long PAST = 1_700_000_000_000L;

    /** The last value of each key of the compacted topics, by `topic-partition key`; null: a tombstone. */
    static final Map<String, byte[]> last = new HashMap<>();

    static KafkaProducer<byte[], byte[]> living;
    static KafkaProducer<byte[], byte[]> open;
    static int sent;

    static String fill(int stage, String peer, boolean trims) throws Exception {
        sent = 0;
        if (stage == 0) create();
        else thaw();
        codecs(stage);
        times(stage);
        compacted(stage);
        ids(stage);
        continued(stage);
        many(stage);
        large(stage);
        trimmed(stage, trims);
        if (!peer.equals("barnabas")) transactions(stage);
        groups(stage);
        if (peer.equals("kafka-4")) modernGroup(stage);
        if (stage == 0) settings();
        if (stage > 0) changes(stage);
        return sent + " records";
    }

    // Topics and settings

    static void topic(String name, int partitions, String... settings) throws Exception {
        Map<String, String> configs = new HashMap<>(Map.of("retention.ms", "-1"));
        for (int i = 0; i < settings.length; i += 2) configs.put(settings[i], settings[i + 1]);
        Dirs.admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(configs))).all().get();
    }

    static void create() throws Exception {
        topic("codecs", 6);
        topic("append-time", 2, "message.timestamp.type", "LogAppendTime");
        topic("recompressed", 1, "compression.type", "zstd");
        for (String name : COMPACTED)
            topic(name, 2, "cleanup.policy", name.equals("compact-delete") ? "compact,delete" : "compact", "segment.bytes", "1048576",
                "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "86400000");
        topic("txn", 3);
        topic("trimmed", 3, "segment.bytes", "1048576");
        topic("ids", 4);
        topic("continued", 2);
        topic("many", MANY, "flush.messages", "1000", "max.message.bytes", "2000000");
        topic("large", 2, "segment.bytes", "1048576", "index.interval.bytes", "1024");
        topic("empty", 3, "min.insync.replicas", "1", "file.delete.delay.ms", "1234", "unclean.leader.election.enable", "true");
        topic("gone", 3);
        topic("again", 2);
        plain("gone", 0, 3, 20);
        plain("again", 0, 2, 20);
        Dirs.admin.deleteTopics(List.of("gone", "again")).all().get();
        for (int tries = 0; Dirs.admin.listTopics().names().get().contains("again"); tries++) {
            if (tries > 200) throw new IllegalStateException("a deleted topic stays");
            Thread.sleep(50);
        }
        topic("again", 3);
        plain("again", 1, 3, 10);
    }

    /** Records in the metadata log that a broker may not know what to do with, but may not lose either. */
    static void settings() throws Exception {
        set(ConfigResource.Type.BROKER, "1", "log.cleaner.threads", "2");
        set(ConfigResource.Type.BROKER, "", "message.max.bytes", "3000000");
        Dirs.admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(Map.of("client-id", "slow")),
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 123456.0))))).all().get();
        Dirs.admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("alice", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), "secret"))).all().get();
        Dirs.admin.createAcls(List.of(new AclBinding(new ResourcePattern(ResourceType.TOPIC, "codecs", PatternType.PREFIXED),
            new AccessControlEntry("User:bob", "*", AclOperation.READ, AclPermissionType.ALLOW)))).all().get();
    }

    static void changes(int stage) throws Exception {
        set(ConfigResource.Type.TOPIC, "empty", "max.message.bytes", "" + (1_000_000 + stage));
        topic("made-" + stage, 2, "segment.ms", "" + (1_000_000 + stage));
        plain("made-" + stage, stage, 2, 30);
        Dirs.admin.createPartitions(Map.of("empty", NewPartitions.increaseTo(3 + stage))).all().get();
        topic("gone-" + stage, 1);
        Dirs.admin.deleteTopics(List.of("gone-" + stage)).all().get();
    }

    static void set(ConfigResource.Type type, String name, String key, String value) throws Exception {
        Collection<AlterConfigOp> ops = List.of(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET));
        Dirs.admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), ops)).all().get();
    }

    static void thaw() throws Exception {
        for (String name : COMPACTED) set(ConfigResource.Type.TOPIC, name, "min.compaction.lag.ms", "0");
    }

    /** Waits up to `seconds` for compaction to have thinned the compacted topics, then stops it. */
    static String freeze(int seconds) throws Exception {
        long deadline = System.currentTimeMillis() + 1000L * seconds;
        long[] seen = counts();
        while (seen[0] * 4 > seen[1] && System.currentTimeMillis() < deadline) {
            Thread.sleep(300);
            seen = counts();
        }
        for (String name : COMPACTED) set(ConfigResource.Type.TOPIC, name, "min.compaction.lag.ms", "" + 7 * 86_400_000L);
        for (long[] before = {-1, -1}; before[0] != seen[0]; seen = counts()) {
            before = seen;
            Thread.sleep(1200);
        }
        checkLast();
        return seen[0] + " of " + seen[1];
    }

    /** Compaction may take what was overwritten, and nothing else: the last value of every key must be there. */
    static void checkLast() throws Exception {
        Map<String, byte[]> found = new HashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
            List<TopicPartition> all = new ArrayList<>();
            for (String topic : List.of("compacted", "compact-delete")) for (int p = 0; p < 2; p++) all.add(new TopicPartition(topic, p));
            Snapshot.read(consumer, all).forEach((p, records) -> {
                for (ConsumerRecord<byte[], byte[]> r : records) found.put(p + " " + new String(r.key(), StandardCharsets.UTF_8), r.value());
            });
        }
        last.forEach((key, value) -> {
            if (!Arrays.equals(value, found.get(key))) throw new IllegalStateException("the last value of " + key + " is not there");
        });
    }

    /** Records left in the compacted topics, and offsets given out there. */
    static long[] counts() throws Exception {
        long left = 0, given = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
            List<TopicPartition> all = new ArrayList<>();
            for (String topic : COMPACTED) for (int p = 0; p < 2; p++) all.add(new TopicPartition(topic, p));
            for (long end : consumer.endOffsets(all).values()) given += end;
            for (List<ConsumerRecord<byte[], byte[]>> records : Snapshot.read(consumer, all).values()) left += records.size();
        }
        return new long[] {left, given};
    }

    // Records

    static KafkaProducer<byte[], byte[]> producer(String... settings) {
        Properties p = new Properties();
        p.put("bootstrap.servers", Dirs.bootstrap);
        p.put("acks", "all");
        p.put("enable.idempotence", "false");
        p.put("linger.ms", "5");
        p.put("reconnect.backoff.max.ms", "200");
        for (int i = 0; i < settings.length; i += 2) p.put(settings[i], settings[i + 1]);
        return new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** The n-th record of a stage: keys, values and headers of every kind, and times that go to and fro. */
    static ProducerRecord<byte[], byte[]> record(String topic, int partition, int stage, int n) {
        byte[] key = n % 7 == 0 ? null : n % 11 == 0 ? new byte[0] : bytes("key-" + n % 13);
        byte[] value = n % 5 == 0 ? null : n % 17 == 0 ? new byte[0] : bytes(topic + " " + stage + " " + n + " " + "x".repeat(n * 37 % 300));
        ProducerRecord<byte[], byte[]> made = new ProducerRecord<>(topic, partition, PAST + stage * 1_000_000L + n * 7919 % 1000 * 100L, key, value);
        for (int h = 0; h < n % 4; h++) made.headers().add("h" + h % 2, h == 1 ? null : bytes("header " + n));
        return made;
    }

    static void send(KafkaProducer<byte[], byte[]> producer, List<ProducerRecord<byte[], byte[]>> records) throws Exception {
        List<Future<RecordMetadata>> waiting = new ArrayList<>();
        for (ProducerRecord<byte[], byte[]> record : records) waiting.add(producer.send(record));
        producer.flush();
        for (Future<RecordMetadata> one : waiting) one.get();
        sent += records.size();
    }

    static List<ProducerRecord<byte[], byte[]>> records(String topic, int partition, int stage, int count) {
        List<ProducerRecord<byte[], byte[]>> made = new ArrayList<>();
        for (int n = 0; n < count; n++) made.add(record(topic, partition, stage, n));
        return made;
    }

    /** Without times of their own: Kafka forgets a producer by the time of its last record, at the next start. */
    static List<ProducerRecord<byte[], byte[]>> today(List<ProducerRecord<byte[], byte[]>> records) {
        List<ProducerRecord<byte[], byte[]>> made = new ArrayList<>();
        for (ProducerRecord<byte[], byte[]> r : records) made.add(new ProducerRecord<>(r.topic(), r.partition(), null, r.key(), r.value(), r.headers()));
        return made;
    }

    static void plain(String topic, int stage, int partitions, int count, String... settings) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(settings)) {
            for (int p = 0; p < partitions; p++) send(producer, records(topic, p, stage, count));
        }
    }

    static void codecs(int stage) throws Exception {
        for (int c = 0; c < CODECS.length; c++)
            try (KafkaProducer<byte[], byte[]> producer = producer("compression.type", CODECS[c], "batch.size", "2000")) {
                send(producer, records("codecs", c, stage, 60));
                send(producer, records("codecs", 5, stage, 10));
            }
        plain("recompressed", stage, 1, 50, "compression.type", "lz4");
    }

    static void times(int stage) throws Exception {
        for (int n = 0; n < 3; n++) {
            plain("append-time", stage, 2, 20, "compression.type", CODECS[n]);
            Thread.sleep(5);
        }
    }

    static void compacted(int stage) throws Exception {
        Random random = new Random(stage);
        try (KafkaProducer<byte[], byte[]> producer = producer("batch.size", "16384")) {
            for (String topic : List.of("compacted", "compact-delete")) for (int p = 0; p < 2; p++) {
                List<ProducerRecord<byte[], byte[]>> made = new ArrayList<>();
                for (int n = 0; n < 3000; n++) {
                    byte[] value = n % 29 == 0 ? null : new byte[1000];
                    if (value != null) random.nextBytes(value);
                    String key = "k" + random.nextInt(200);
                    last.put(topic + "-" + p + " " + key, value);
                    made.add(new ProducerRecord<>(topic, p, bytes(key), value));
                }
                send(producer, made);
            }
        }
    }

    static void ids(int stage) throws Exception {
        for (int n = 0; n < 8; n++)
            try (KafkaProducer<byte[], byte[]> producer = producer("enable.idempotence", "true")) {
                send(producer, List.of(new ProducerRecord<>("ids", n % 4, bytes("stage " + stage), bytes("producer " + n))));
            }
    }

    /** An idempotent producer that outlives the brokers: its sequences go on. */
    static void continued(int stage) throws Exception {
        if (living == null) living = producer("enable.idempotence", "true", "batch.size", "500");
        for (int p = 0; p < 2; p++) send(living, today(records("continued", p, stage, 40)));
    }

    static void many(int stage) throws Exception {
        plain("many", stage, MANY, 5 + stage);
    }

    static void large(int stage) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer("enable.idempotence", "true")) {
            for (int p = 0; p < 2; p++) {
                List<ProducerRecord<byte[], byte[]>> made = new ArrayList<>();
                for (int n = 0; n < 2500; n++)
                    made.add(new ProducerRecord<>("large", p, null, ByteBuffer.allocate(4).putInt(n).array(), bytes("v".repeat(1000))));
                send(producer, made);
            }
        }
    }

    static void trimmed(int stage, boolean trims) throws Exception {
        plain("trimmed", stage, 2, 50, "batch.size", "3000");
        try (KafkaProducer<byte[], byte[]> producer = producer()) {
            List<ProducerRecord<byte[], byte[]>> made = new ArrayList<>();
            for (int n = 0; n < 2200; n++) made.add(new ProducerRecord<>("trimmed", 2, PAST + n, null, bytes("w".repeat(1000))));
            send(producer, made);
        }
        if (trims) Dirs.admin.deleteRecords(Map.of(new TopicPartition("trimmed", 0), RecordsToDelete.beforeOffset(17 + 40L * stage),
            new TopicPartition("trimmed", 1), RecordsToDelete.beforeOffset(-1),
            new TopicPartition("trimmed", 2), RecordsToDelete.beforeOffset(1500L * (stage + 1)))).all().get();
    }

    // Transactions

    static KafkaProducer<byte[], byte[]> transactional(String id) {
        KafkaProducer<byte[], byte[]> producer = producer("enable.idempotence", "true", "transactional.id", id, "transaction.timeout.ms", "900000");
        producer.initTransactions();
        return producer;
    }

    static void transactions(int stage) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = transactional("t-ends")) {
            for (int round = 0; round < 4; round++) {
                producer.beginTransaction();
                for (int p = 0; p < 2; p++) send(producer, records("txn", p, stage * 10 + round, 12));
                if (round % 2 == 0) {
                    producer.sendOffsetsToTransaction(Map.of(new TopicPartition("codecs", round), new OffsetAndMetadata(10L * stage + round, "in a transaction")),
                        new ConsumerGroupMetadata("g-txn"));
                    producer.commitTransaction();
                } else producer.abortTransaction();
            }
            for (int round = 0; round < 6; round++) {
                producer.beginTransaction();
                List<ProducerRecord<byte[], byte[]>> made = new ArrayList<>();
                for (int n = 0; n < 400; n++) made.add(new ProducerRecord<>("compacted-txn", n % 2, bytes("k" + n % 30), new byte[1000]));
                send(producer, made);
                if (round % 3 == 2) producer.abortTransaction();
                else producer.commitTransaction();
            }
        }
        if (open == null) leaveOpen(stage);
    }

    /** One that nobody ends while this broker runs, with records of others behind it. */
    static void leaveOpen(int stage) throws Exception {
        open = transactional("t-open");
        open.beginTransaction();
        send(open, records("txn", 2, stage, 7));
        plain("txn", stage + 100, 3, 9);
    }

    static String finish() throws Exception {
        open = null;
        leaveOpen(900);
        return "taken over";
    }

    // Groups

    static KafkaConsumer<byte[], byte[]> consumer(Map<String, String> more) {
        Properties p = new Properties();
        p.put("bootstrap.servers", Dirs.bootstrap);
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        p.put("reconnect.backoff.max.ms", "200");
        p.put("fetch.max.wait.ms", "50");
        p.putAll(more);
        return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static void consume(String group, String protocol, String topic) throws Exception {
        Map<String, String> more = new HashMap<>(Map.of("group.id", group, "group.protocol", protocol, "max.poll.records", "25"));
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(more)) {
            consumer.subscribe(List.of(topic));
            long deadline = System.currentTimeMillis() + 30_000;
            for (int rounds = 0; rounds < 4;) {
                ConsumerRecords<byte[], byte[]> got = consumer.poll(Duration.ofMillis(200));
                if (System.currentTimeMillis() > deadline) throw new IllegalStateException(group + " gets nothing");
                if (got.isEmpty()) continue;
                Map<TopicPartition, OffsetAndMetadata> upto = new HashMap<>();
                for (TopicPartition p : got.partitions()) {
                    List<ConsumerRecord<byte[], byte[]>> of = got.records(p);
                    ConsumerRecord<byte[], byte[]> last = of.get(of.size() - 1);
                    upto.put(p, new OffsetAndMetadata(last.offset() + 1, last.leaderEpoch(), "round " + rounds));
                }
                consumer.commitSync(upto);
                rounds++;
            }
        }
    }

    static void groups(int stage) throws Exception {
        consume("g-classic", "classic", "codecs");
        consume("g-classic-" + stage, "classic", "many");
        Dirs.admin.alterConsumerGroupOffsets("g-admin", Map.of(new TopicPartition("large", stage % 2), new OffsetAndMetadata(100 + stage, Optional.of(0), "by hand"))).all().get();
        Dirs.admin.alterConsumerGroupOffsets("g-gone", Map.of(new TopicPartition("large", 0), new OffsetAndMetadata(5))).all().get();
        Dirs.admin.deleteConsumerGroups(List.of("g-gone")).all().get();
    }

    /** KIP-848, where the cluster's group.version has it. */
    static void modernGroup(int stage) throws Exception {
        FinalizedVersionRange level = Dirs.admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("group.version");
        if (level != null && level.maxVersionLevel() > 0) consume("g-modern", "consumer", "codecs");
    }
}
