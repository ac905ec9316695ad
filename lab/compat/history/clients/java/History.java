// Apache's Java client as one client of a chaos run: writes what it saw as a history (../../README.md).
//
// One role for each process, told in the first argument (JSON). `stop` on standard input ends it in good order, the end
// of standard input at once. A line is written before the operation it announces and before whatever follows from it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class History {
    static JsonNode args;
    static String name, bootstrap;
    static OutputStream out;
    static volatile boolean stopping;
    static long nextId = 1;
    static Random random;

    public static void main(String[] argv) throws Exception {
        args = new ObjectMapper().readTree(argv[0]);
        name = args.get("name").asText();
        bootstrap = args.get("bootstrap").asText();
        random = new Random(args.get("seed").asLong());
        out = new FileOutputStream(args.get("out").asText(), true);
        Thread reader = new Thread(() -> {
            try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line; (line = in.readLine()) != null;) if (line.equals("stop")) stopping = true;
            } catch (IOException e) {
                e.printStackTrace();
            }
            Runtime.getRuntime().halt(3);
        });
        reader.setDaemon(true);
        reader.start();
        switch (args.get("role").asText()) {
            case "producer": new Writer().run(); break;
            case "txn": new Transactions().run(); break;
            case "group": group(); break;
            case "mover": new Mover().run(); break;
            case "final": last(); break;
            case "observer": observe(); break;
            case "share": share(); break;
            default: throw new IllegalArgumentException("no such role");
        }
        out.flush();
        Runtime.getRuntime().halt(0);
    }

    // Lines

    static String line(String op, String phase, String rest) {
        return "{\"t\":" + System.nanoTime() + ",\"c\":\"" + name + "\",\"op\":\"" + op + "\",\"ph\":\"" + phase + "\"" + rest + "}\n";
    }

    static synchronized void say(String line) {
        try {
            out.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static void say(String op, String phase, String rest) {
        say(line(op, phase, rest));
    }

    static String quoted(String text) {
        return "\"" + String.valueOf(text).replaceAll("[^ -!#-\\[\\]-~]", "'") + "\"";
    }

    /** One record: where it goes, which value it is, and what was said of it. */
    static class Rec {
        String topic, key;
        int partition;
        long value, offset = -1, source = -1;
        boolean tombstone;

        String told(boolean withOffset) {
            String row = "[\"" + topic + "\"," + partition + "," + value;
            if (withOffset) return row + "," + offset + "]";
            if (source >= 0) return row + ",null,null,false," + source + "]";
            return key == null ? row + "]" : row + ",null,\"" + key + "\"" + (tombstone ? ",true]" : "]");
        }
    }

    static String told(List<Rec> records, boolean withOffset) {
        StringBuilder rows = new StringBuilder();
        for (Rec r : records) rows.append(rows.length() == 0 ? "" : ",").append(r.told(withOffset));
        return ",\"recs\":[" + rows + "]";
    }

    /** Sends of one operation: when all ended, an ok line for those that are in, an info line for those of which nobody knows. */
    static class Op {
        final List<Rec> good = new ArrayList<>(), open = new ArrayList<>();
        final long id;
        final String txn;
        int left;
        String error = "";
        final Runnable done;

        Op(List<Rec> records, String txn, Runnable done) {
            synchronized (History.class) { id = nextId++; }
            this.txn = txn;
            this.done = done;
            left = records.size();
            say("send", "invoke", ",\"id\":" + id + txn + told(records, false));
        }

        synchronized void ended(Rec r, long offset, Exception e) {
            if (e == null) {
                r.offset = offset;
                good.add(r);
            } else {
                open.add(r);
                error = e.getClass().getSimpleName();
            }
            if (--left > 0) return;
            if (!good.isEmpty()) say("send", "ok", ",\"id\":" + id + txn + told(good, true));
            if (!open.isEmpty()) say("send", "info", ",\"id\":" + id + txn + told(open, false) + ",\"err\":" + quoted(error));
            done.run();
        }
    }

    // Producers

    static Properties producing() {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("client.id", name);
        p.put("acks", "all");
        p.put("enable.idempotence", "true");
        p.put("linger.ms", "5");
        p.put("max.in.flight.requests.per.connection", args.path("in_flight").asText("5"));
        p.put("delivery.timeout.ms", "600000");
        p.put("request.timeout.ms", "5000");
        p.put("max.block.ms", "15000");
        p.put("transaction.timeout.ms", "15000");
        p.put("metadata.max.age.ms", "10000");
        p.put("reconnect.backoff.max.ms", "500");
        return p;
    }

    static KafkaProducer<byte[], byte[]> producer(Properties p) {
        return new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static class Writer {
        long writer = args.get("writer").asLong(), sequence;
        KafkaProducer<byte[], byte[]> producer;
        final List<String> topics = new ArrayList<>();
        final int perOp = args.path("per_op").asInt(10);

        Writer() {
            args.get("topics").fieldNames().forEachRemaining(topics::add);
        }

        /** A new producer is a new writer: what the old one left open may come in late. */
        void renew() {
            if (producer != null) producer.close(Duration.ZERO);
            writer++;
            sequence = 0;
            producer = null;
        }

        List<Rec> records(int count) {
            List<Rec> made = new ArrayList<>();
            String topic = topics.get(random.nextInt(topics.size()));
            int partitions = args.get("topics").get(topic).asInt(), first = random.nextInt(partitions);
            for (int i = 0; i < count; i++) {
                Rec r = new Rec();
                r.topic = topic;
                r.partition = (first + i % 2) % partitions;
                r.value = writer << 32 | sequence++;
                if (args.path("keyed").asBoolean()) {
                    int key = random.nextInt(60);
                    r.key = "k" + key;
                    r.partition = key % partitions;
                    r.tombstone = random.nextInt(8) == 0;
                }
                made.add(r);
            }
            return made;
        }

        void send(List<Rec> records, Op op) {
            RuntimeException refused = null;
            for (Rec r : records) {
                if (refused != null) {
                    op.ended(r, -1, refused);
                    continue;
                }
                byte[] value = r.tombstone ? null : bytes(Long.toString(r.value));
                try {
                    producer.send(new ProducerRecord<>(r.topic, r.partition, bytes(r.key), value), (at, e) -> op.ended(r, at == null ? -1 : at.offset(), e));
                } catch (RuntimeException e) {
                    refused = e;
                    op.ended(r, -1, e);
                }
            }
            if (refused != null) throw refused;
        }

        void run() throws Exception {
            Semaphore inFlight = new Semaphore(8);
            long pause = perOp * 1_000_000_000L / args.get("rate").asLong(), next = System.nanoTime();
            while (!stopping) {
                try {
                    if (producer == null) producer = producer(producing());
                    inFlight.acquire();
                    List<Rec> records = records(perOp);
                    send(records, new Op(records, "", inFlight::release));
                } catch (RuntimeException e) {
                    System.err.println(e);
                    Thread.sleep(200);
                    renew();
                }
                next = Math.max(next + pause, System.nanoTime() - 1_000_000_000L);
                TimeUnit.NANOSECONDS.sleep(Math.max(0, next - System.nanoTime()));
            }
            inFlight.tryAcquire(8, 60, TimeUnit.SECONDS);
        }
    }

    static class Transactions extends Writer {
        long number;
        final Properties settings = producing();

        Transactions() {
            settings.put("transactional.id", args.get("txid").asText());
            settings.put("delivery.timeout.ms", "12000");
        }

        boolean prepare() throws InterruptedException {
            if (producer != null) return true;
            try {
                producer = producer(settings);
                producer.initTransactions();
                return true;
            } catch (RuntimeException e) {
                System.err.println("init: " + e);
                renew();
                Thread.sleep(300);
                return false;
            }
        }

        String txn() {
            return ",\"txn\":" + number;
        }

        void begin() {
            number++;
            say("begin", "invoke", txn());
            producer.beginTransaction();
        }

        void write() {
            int ops = 1 + random.nextInt(3);
            for (int i = 0; i < ops; i++) {
                List<Rec> records = records(perOp);
                send(records, new Op(records, txn(), () -> {}));
            }
            producer.flush();
        }

        /** Commits or aborts; a commit that timed out is asked for again, for nothing else may follow it. */
        boolean end(boolean commit) {
            String rest = txn() + ",\"commit\":" + commit;
            say("end", "invoke", rest);
            for (int attempt = 1; ; attempt++) {
                try {
                    if (commit) producer.commitTransaction();
                    else producer.abortTransaction();
                    say("end", "ok", rest);
                    return true;
                } catch (TimeoutException e) {
                    if (attempt == 4) {
                        say("end", "info", rest + ",\"err\":\"TimeoutException\"");
                        return false;
                    }
                } catch (RuntimeException e) {
                    say("end", "info", rest + ",\"err\":" + quoted(e.getClass().getSimpleName() + ": " + e.getMessage()));
                    return false;
                }
            }
        }

        void body() throws Exception {
            write();
        }

        void run() throws Exception {
            long next = System.nanoTime();
            while (!stopping) {
                if (!prepare()) continue;
                boolean well = false, committing = random.nextInt(5) != 0;
                try {
                    begin();
                    body();
                    well = end(committing);
                    if (well) ended(committing);
                } catch (RuntimeException e) {
                    System.err.println(e);
                    well = end(false);
                    if (well) ended(false);
                }
                if (!well) {
                    renew();
                    ended(false);
                }
                next = Math.max(next + perOp * 2_000_000_000L / args.get("rate").asLong(), System.nanoTime() - 1_000_000_000L);
                TimeUnit.NANOSECONDS.sleep(Math.max(0, next - System.nanoTime()));
            }
            if (producer != null) producer.close(Duration.ofSeconds(10));
        }

        void ended(boolean committed) {}
    }

    /** Consumes, and produces what it consumed under new values together with its offsets, in transactions. */
    static class Mover extends Transactions {
        KafkaConsumer<byte[], byte[]> consumer;
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        long commitId;

        @Override void body() {
            if (consumer == null) {
                consumer = consumer(true, true);
                consumer.subscribe(List.of(args.get("from").asText()), listener(consumer));
            }
            offsets.clear();
            ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(300));
            if (polled.isEmpty()) return;
            say("poll", "ok", polled(polled, true) + txn());
            List<Rec> made = new ArrayList<>();
            for (ConsumerRecord<byte[], byte[]> r : polled) {
                Rec moved = new Rec();
                moved.topic = topics.get(0);
                moved.partition = r.partition() % args.get("topics").get(moved.topic).asInt();
                moved.value = writer << 32 | sequence++;
                moved.source = Long.parseLong(new String(r.value(), StandardCharsets.UTF_8));
                made.add(moved);
                offsets.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
            }
            send(made, new Op(made, txn(), () -> {}));
            producer.flush();
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            synchronized (History.class) { commitId = nextId++; }
            say("commit", "invoke", ",\"id\":" + commitId + ",\"group\":" + quoted(args.get("group").asText()));
        }

        @Override void ended(boolean committed) {
            if (committed && !offsets.isEmpty()) {
                say("commit", "ok", ",\"id\":" + commitId + ",\"group\":" + quoted(args.get("group").asText()) + offs(offsets));
            } else if (!committed && consumer != null) {
                // Begins anew where the group stands, as a program that was restarted does.
                close(consumer);
                consumer = null;
            }
            offsets.clear();
        }

        @Override void run() throws Exception {
            super.run();
            if (consumer != null) close(consumer);
        }
    }

    // Consumers

    static KafkaConsumer<byte[], byte[]> consumer(boolean isCommitted, boolean inGroup) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("client.id", name);
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        p.put("isolation.level", isCommitted ? "read_committed" : "read_uncommitted");
        p.put("max.poll.records", "200");
        p.put("metadata.max.age.ms", "10000");
        p.put("request.timeout.ms", "10000");
        p.put("default.api.timeout.ms", "15000");
        p.put("reconnect.backoff.max.ms", "500");
        if (inGroup) {
            p.put("group.id", args.get("group").asText());
            String protocol = args.path("protocol").asText("classic");
            p.put("group.protocol", protocol);
            if (protocol.equals("classic")) {
                p.put("session.timeout.ms", "6000");
                p.put("heartbeat.interval.ms", "1000");
            }
        }
        return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static String polled(ConsumerRecords<byte[], byte[]> polled, boolean isCommitted) {
        StringBuilder rows = new StringBuilder();
        for (ConsumerRecord<byte[], byte[]> r : polled) {
            rows.append(rows.length() == 0 ? "" : ",").append("[\"").append(r.topic()).append("\",").append(r.partition()).append(',');
            rows.append(r.value() == null ? "null" : new String(r.value(), StandardCharsets.UTF_8)).append(',').append(r.offset());
            if (r.key() != null) rows.append(",\"").append(new String(r.key(), StandardCharsets.UTF_8)).append('"');
            rows.append(']');
        }
        String group = args.has("group") ? ",\"group\":" + quoted(args.get("group").asText()) : "";
        return group + ",\"iso\":\"" + (isCommitted ? "rc" : "ru") + "\",\"recs\":[" + rows + "]";
    }

    static String offs(Map<TopicPartition, OffsetAndMetadata> offsets) {
        StringBuilder rows = new StringBuilder();
        offsets.forEach((p, o) -> {
            if (o != null) rows.append(rows.length() == 0 ? "" : ",").append("[\"" + p.topic() + "\"," + p.partition() + "," + o.offset() + "]");
        });
        return ",\"offs\":[" + rows + "]";
    }

    static ConsumerRebalanceListener listener(KafkaConsumer<byte[], byte[]> consumer) {
        return new ConsumerRebalanceListener() {
            public void onPartitionsRevoked(Collection<TopicPartition> parts) { assigned(consumer); }
            public void onPartitionsAssigned(Collection<TopicPartition> parts) { assigned(consumer); }
            public void onPartitionsLost(Collection<TopicPartition> parts) { assigned(consumer); }
        };
    }

    static void assigned(KafkaConsumer<byte[], byte[]> consumer) {
        StringBuilder rows = new StringBuilder();
        for (TopicPartition p : consumer.assignment()) rows.append(rows.length() == 0 ? "" : ",").append("[\"" + p.topic() + "\"," + p.partition() + "]");
        say("assign", "ok", ",\"group\":" + quoted(args.get("group").asText()) + ",\"parts\":[" + rows + "]");
    }

    static void close(KafkaConsumer<byte[], byte[]> consumer) {
        try {
            consumer.close(CloseOptions.timeout(Duration.ofSeconds(5)));
        } catch (RuntimeException e) {
            System.err.println("close: " + e);
        }
        say("assign", "ok", ",\"parts\":[]");
    }

    static void group() {
        boolean isCommitted = args.get("iso").asText().equals("rc");
        List<String> topics = new ArrayList<>();
        args.get("topics").fieldNames().forEachRemaining(topics::add);
        while (!stopping) {
            KafkaConsumer<byte[], byte[]> consumer = consumer(isCommitted, true);
            consumer.subscribe(topics, listener(consumer));
            // At times a member leaves and another one comes.
            long until = System.nanoTime() + (20 + random.nextInt(40)) * 1_000_000_000L;
            try {
                while (!stopping && System.nanoTime() < until) turn(consumer, isCommitted);
            } catch (RuntimeException e) {
                System.err.println(e);
            }
            close(consumer);
        }
    }

    static void turn(KafkaConsumer<byte[], byte[]> consumer, boolean isCommitted) {
        ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(200));
        if (polled.isEmpty()) return;
        say("poll", "ok", polled(polled, isCommitted));
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> r : polled) offsets.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
        long id = nextId++;
        String rest = ",\"id\":" + id + ",\"group\":" + quoted(args.get("group").asText());
        say("commit", "invoke", rest);
        try {
            consumer.commitSync(offsets, Duration.ofSeconds(10));
            say("commit", "ok", rest + offs(offsets));
        } catch (RuntimeException e) {
            say("commit", "info", rest + offs(offsets) + ",\"err\":" + quoted(e.getClass().getSimpleName()));
        }
    }

    // Share groups (KIP-932)

    /** Longer than a lock and a session last: what nobody gives in so long is settled, or was never there. */
    static final long SHARE_QUIET_NS = 25_000_000_000L;

    static void shareSettings(String group) throws InterruptedException {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        List<AlterConfigOp> ops = new ArrayList<>();
        Map.of("share.auto.offset.reset", "earliest", "share.record.lock.duration.ms", "15000").forEach((key, value) ->
            ops.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        while (!stopping) {
            try (Admin admin = admin()) {
                admin.incrementalAlterConfigs(Map.of(resource, ops)).all().get(15, TimeUnit.SECONDS);
                return;
            } catch (Exception e) {
                System.err.println(e);
                Thread.sleep(500);
            }
        }
    }

    /** Accepts most, releases some, rejects a few; members come and go. Stops once nothing is given any more. */
    static void share() throws InterruptedException {
        String group = args.get("group").asText();
        List<String> topics = new ArrayList<>();
        args.get("topics").fieldNames().forEachRemaining(topics::add);
        shareSettings(group);
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("client.id", name);
        p.put("group.id", group);
        p.put("share.acknowledgement.mode", "explicit");
        p.put("max.poll.records", "100");
        p.put("metadata.max.age.ms", "10000");
        p.put("request.timeout.ms", "10000");
        p.put("default.api.timeout.ms", "15000");
        p.put("reconnect.backoff.max.ms", "500");
        long lastGiven = System.nanoTime();
        boolean isDone = false;
        while (!isDone) {
            KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            consumer.subscribe(topics);
            long until = System.nanoTime() + (20 + random.nextInt(40)) * 1_000_000_000L;
            try {
                while (!isDone && (stopping || System.nanoTime() < until)) {
                    if (shareTurn(consumer, group)) lastGiven = System.nanoTime();
                    isDone = stopping && System.nanoTime() - lastGiven > SHARE_QUIET_NS;
                }
            } catch (RuntimeException e) {
                System.err.println(e);
            }
            try {
                consumer.close(Duration.ofSeconds(5));
            } catch (RuntimeException e) {
                System.err.println("close: " + e);
            }
        }
    }

    /** Whether anything was given. */
    static boolean shareTurn(KafkaShareConsumer<byte[], byte[]> consumer, String group) {
        ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(200));
        if (polled.isEmpty()) return false;
        StringBuilder given = new StringBuilder();
        Map<TopicPartition, StringBuilder> said = new HashMap<>();
        List<AcknowledgeType> types = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> r : polled) {
            String value = r.value() == null ? "null" : new String(r.value(), StandardCharsets.UTF_8);
            given.append(given.length() == 0 ? "" : ",").append("[\"" + r.topic() + "\"," + r.partition() + "," + value + "," + r.offset() + "," + r.deliveryCount().orElse((short) 0) + "]");
            int draw = random.nextInt(20);
            AcknowledgeType type = draw == 0 ? AcknowledgeType.REJECT : draw < 3 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
            types.add(type);
            StringBuilder rows = said.computeIfAbsent(new TopicPartition(r.topic(), r.partition()), key -> new StringBuilder());
            rows.append(rows.length() == 0 ? "" : ",").append("[\"" + r.topic() + "\"," + r.partition() + "," + r.offset() + ",\"" + type.toString() + "\"]");
        }
        String rest = ",\"group\":" + quoted(group);
        say("share", "ok", rest + ",\"given\":[" + given + "]");
        int at = 0;
        for (ConsumerRecord<byte[], byte[]> r : polled) consumer.acknowledge(r, types.get(at++));
        Map<TopicIdPartition, Optional<KafkaException>> result = Map.of();
        try {
            result = consumer.commitSync(Duration.ofSeconds(10));
        } catch (RuntimeException e) {
            System.err.println(e);
        }
        for (Map.Entry<TopicPartition, StringBuilder> rows : said.entrySet()) {
            boolean isOk = result.entrySet().stream().anyMatch(e -> e.getKey().topicPartition().equals(rows.getKey()) && e.getValue().isEmpty());
            say("ack", isOk ? "ok" : "info", rest + ",\"acks\":[" + rows.getValue() + "]");
        }
        return true;
    }

    // The last reading, and what is looked at meanwhile

    static List<TopicPartition> partitions() {
        List<TopicPartition> all = new ArrayList<>();
        args.get("topics").properties().forEach(t -> {
            for (int p = 0; p < t.getValue().asInt(); p++) all.add(new TopicPartition(t.getKey(), p));
        });
        return all;
    }

    static Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", bootstrap, "default.api.timeout.ms", "15000", "request.timeout.ms", "5000"));
    }

    static Map<TopicPartition, ListOffsetsResultInfo> offsets(Admin admin, OffsetSpec spec, IsolationLevel level) throws Exception {
        Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
        for (TopicPartition p : partitions()) wanted.put(p, spec);
        return admin.listOffsets(wanted, new ListOffsetsOptions(level).timeoutMs(5000)).all().get();
    }

    /** Reads everything from the beginning. Read_committed has to come as far as everybody: no transaction stays open for ever. */
    static void last() throws Exception {
        boolean isCommitted = args.get("iso").asText().equals("rc");
        long until = System.nanoTime() + args.get("patience").asLong() * 1_000_000_000L;
        Map<TopicPartition, ListOffsetsResultInfo> ends = null;
        try (Admin admin = admin()) {
            while (ends == null && System.nanoTime() < until) {
                try {
                    ends = offsets(admin, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED);
                } catch (Exception e) {
                    System.err.println(e);
                    Thread.sleep(200);
                }
            }
        }
        if (ends == null) throw new IllegalStateException("nobody says where the partitions end");
        KafkaConsumer<byte[], byte[]> consumer = consumer(isCommitted, false);
        consumer.assign(partitions());
        consumer.seekToBeginning(partitions());
        Map<TopicPartition, Long> positions = new HashMap<>();
        boolean isThere = false;
        while (!isThere && System.nanoTime() < until) {
            try {
                ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(200));
                if (!polled.isEmpty()) say("poll", "ok", polled(polled, isCommitted));
                isThere = true;
                for (TopicPartition p : partitions()) {
                    positions.put(p, consumer.position(p, Duration.ofSeconds(5)));
                    if (positions.get(p) < ends.get(p).offset()) isThere = false;
                }
            } catch (RuntimeException e) {
                System.err.println(e);
            }
        }
        StringBuilder rows = new StringBuilder();
        for (TopicPartition p : partitions())
            rows.append(rows.length() == 0 ? "" : ",").append("[\"" + p.topic() + "\"," + p.partition() + "," + ends.get(p).offset() + "," + positions.getOrDefault(p, -1L) + "]");
        say("final", "ok", ",\"iso\":\"" + (isCommitted ? "rc" : "ru") + "\",\"offs\":[" + rows + "]");
    }

    static void told(Map<TopicPartition, ListOffsetsResultInfo> found, String kind) {
        StringBuilder rows = new StringBuilder();
        found.forEach((p, o) -> rows.append(rows.length() == 0 ? "" : ",")
            .append("[\"" + p.topic() + "\"," + p.partition() + ",\"" + kind + "\"," + o.offset() + "," + o.leaderEpoch().orElse(-1) + "]"));
        say("offsets", "ok", ",\"offs\":[" + rows + "]");
    }

    /** What does not rest says what it is doing. */
    static void watch(String kind, String what, String state) {
        say("watch", "ok", ",\"kind\":\"" + kind + "\",\"name\":" + quoted(what) + (state == null ? "" : ",\"state\":" + quoted(state)));
    }

    static void observe() throws Exception {
        // Offsets of a transaction that is committed and whose markers are under way are waited for.
        ListConsumerGroupOffsetsOptions stable = new ListConsumerGroupOffsetsOptions().requireStable(true);
        try (Admin admin = admin()) {
            while (!stopping) {
                try {
                    told(offsets(admin, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED), "latest");
                    told(offsets(admin, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED), "lso");
                    told(offsets(admin, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED), "earliest");
                } catch (Exception e) {
                    System.err.println(e);
                }
                for (JsonNode group : args.get("groups")) {
                    long id = nextId++;
                    String rest = ",\"id\":" + id + ",\"group\":" + quoted(group.asText());
                    say("committed", "invoke", rest);
                    try {
                        say("committed", "ok", rest + offs(admin.listConsumerGroupOffsets(group.asText(), stable).partitionsToOffsetAndMetadata().get(5, TimeUnit.SECONDS)));
                        watch("coordinator", group.asText(), null);
                    } catch (Exception e) {
                        say("committed", "fail", rest + ",\"err\":" + quoted(String.valueOf(e.getCause())));
                        watch("coordinator", group.asText(), String.valueOf(e.getCause()));
                    }
                    try {
                        GroupState state = admin.describeConsumerGroups(List.of(group.asText())).all().get(5, TimeUnit.SECONDS).get(group.asText()).groupState();
                        watch("group", group.asText(), state == GroupState.STABLE || state == GroupState.EMPTY ? null : state.toString());
                    } catch (Exception e) {
                        System.err.println(e);
                    }
                }
                Thread.sleep(500);
            }
        }
    }
}
