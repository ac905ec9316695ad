// Apache's Java client of today behind the runner's protocol (../PROTOCOL.md).
//
// One thread owns every client object: between two commands a joined member polls. Standard input is
// read by a second thread; its end ends the program.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Driver {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, String> ASSIGNORS = Map.of(
        "range", RangeAssignor.class.getName(), "roundrobin", RoundRobinAssignor.class.getName(),
        "sticky", StickyAssignor.class.getName(), "cooperative", CooperativeStickyAssignor.class.getName());

    static String bootstrap;
    static Admin admin;
    static KafkaConsumer<byte[], byte[]> member;
    static boolean commitPolls;
    static List<String> assigned;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        LinkedBlockingQueue<JsonNode> commands = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> {
            try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
                for (String line; (line = in.readLine()) != null;) commands.add(JSON.readTree(line));
            } catch (Exception e) {
                e.printStackTrace();
            }
            Runtime.getRuntime().halt(0);
        });
        reader.setDaemon(true);
        reader.start();
        while (true) {
            JsonNode command = member == null ? commands.take() : commands.poll();
            if (command != null) answer(command);
            else try {
                poll();
            } catch (Exception e) {
                say(JSON.createObjectNode().put("ev", "error").put("msg", String.valueOf(e)));
            }
        }
    }

    static void say(ObjectNode message) {
        System.out.println(message);
        System.out.flush();
    }

    static void answer(JsonNode command) {
        ObjectNode reply = JSON.createObjectNode();
        reply.set("id", command.get("id"));
        try {
            reply.set("ok", JSON.valueToTree(run(command)));
        } catch (Throwable e) {
            Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
            reply.put("err", name(cause)).put("msg", String.valueOf(cause.getMessage()));
        }
        say(reply);
    }

    static String name(Throwable e) {
        if (e instanceof ApiException) {
            Errors error = Errors.forException(e);
            if (error != Errors.UNKNOWN_SERVER_ERROR) return error.name();
        }
        return e.getClass().getSimpleName();
    }

    static Object run(JsonNode c) throws Exception {
        switch (c.get("op").asText()) {
            case "produce": return produce(c);
            case "txn": return transaction(c);
            case "fetch": return fetch(c);
            case "offsets": return offsets(c);
            case "pipe": return pipe(c);
            case "pipe_end": return pipeEnd(c);
            case "join": return join(c);
            case "commit": member.commitSync(); return null;
            case "leave": KafkaConsumer<byte[], byte[]> leaving = member; member = null; leaving.close(); return null;
            case "committed": return committed(c);
            case "share_join": return shareJoin(c);
            case "share_poll": return sharePoll(c);
            case "share_ack": return shareAck(c);
            case "share_leave":
                if (c.hasNonNull("timeout_ms")) sharer.close(Duration.ofMillis(c.get("timeout_ms").asLong())); else sharer.close();
                sharer = null; return null;
            case "create_topic": admin().createTopics(List.of(new NewTopic(c.get("name").asText(), c.get("partitions").asInt(), (short) 1)
                .configs(strings(c.get("config"))))).all().get(); return null;
            case "create_partitions": admin().createPartitions(Map.of(c.get("name").asText(), NewPartitions.increaseTo(c.get("partitions").asInt()))).all().get(); return null;
            case "delete_topic": admin().deleteTopics(List.of(c.get("name").asText())).all().get(); return null;
            case "list_topics": return admin().listTopics().names().get().stream().sorted().collect(Collectors.toList());
            case "describe_topic": return describeTopic(c);
            case "get_config": return getConfig(c);
            case "set_config": return setConfig(c);
            case "delete_records": return deleteRecords(c);
            case "list_groups": return admin().listGroups().all().get().stream().map(GroupListing::groupId).sorted().collect(Collectors.toList());
            case "describe_group": return describeGroup(c);
            case "delete_group": admin().deleteConsumerGroups(List.of(c.get("group").asText())).all().get(); return null;
            case "cluster": DescribeClusterResult r = admin().describeCluster();
                return Map.of("brokers", r.nodes().get().size(), "controller", r.controller().get().id());
            default: throw new IllegalArgumentException("no such operation");
        }
    }

    static Admin admin() {
        if (admin == null) admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "default.api.timeout.ms", "20000", "request.timeout.ms", "15000"));
        return admin;
    }

    // Payloads

    static byte[] payload(JsonNode spec) throws Exception {
        if (spec == null || spec.isNull()) return null;
        if (spec.isTextual()) return spec.asText().getBytes(StandardCharsets.UTF_8);
        byte[] out = new byte[spec.get("len").asInt()];
        MessageDigest sha = MessageDigest.getInstance("SHA-256");
        for (int i = 0; i * 32 < out.length; i++) {
            byte[] block = sha.digest((spec.get("rand").asText() + ":" + i).getBytes(StandardCharsets.UTF_8));
            System.arraycopy(block, 0, out, i * 32, Math.min(32, out.length - i * 32));
        }
        return out;
    }

    static JsonNode shown(byte[] data) throws Exception {
        if (data == null) return JSON.nullNode();
        if (data.length <= 200) {
            try {
                return JSON.getNodeFactory().textNode(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(data)).toString());
            } catch (CharacterCodingException e) {
                // Shown by its digest below.
            }
        }
        StringBuilder hex = new StringBuilder();
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(data);
        for (int i = 0; i < 8; i++) hex.append(String.format("%02x", digest[i]));
        return JSON.createObjectNode().put("sha", hex.toString()).put("len", data.length);
    }

    static Map<String, String> strings(JsonNode object) {
        Map<String, String> out = new HashMap<>();
        if (object != null) object.fields().forEachRemaining(e -> out.put(e.getKey(), e.getValue().asText()));
        return out;
    }

    static List<TopicPartition> parts(JsonNode c) {
        return StreamSupport.stream(c.get("parts").spliterator(), false)
            .map(p -> new TopicPartition(c.get("topic").asText(), p.asInt())).collect(Collectors.toList());
    }

    static String text(JsonNode c, String field, String otherwise) {
        return c != null && c.hasNonNull(field) ? c.get(field).asText() : otherwise;
    }

    // Records

    static Object produce(JsonNode c) throws Exception {
        JsonNode config = c.get("config");
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("acks", text(config, "acks", "all"));
        p.put("compression.type", text(config, "codec", "none"));
        p.put("enable.idempotence", text(config, "idempotent", "false"));
        p.put("linger.ms", text(config, "linger_ms", "5"));
        p.put("batch.size", text(config, "batch_bytes", "16384"));
        p.put("max.request.size", text(config, "max_bytes", "1048576"));
        p.put("delivery.timeout.ms", text(config, "delivery_ms", "30000"));
        p.put("request.timeout.ms", "10000");
        ArrayNode results = JSON.createArrayNode();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode r : c.get("records")) {
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(c.get("topic").asText(),
                    r.has("p") ? r.get("p").asInt() : null, r.has("t") ? r.get("t").asLong() : null, payload(r.get("k")), payload(r.get("v")));
                if (r.has("h")) for (JsonNode h : r.get("h")) record.headers().add(h.get(0).asText(), payload(h.get(1)));
                sent.add(producer.send(record));
            }
            for (Future<RecordMetadata> future : sent) {
                try {
                    RecordMetadata at = future.get();
                    results.add(JSON.createArrayNode().add(at.partition()).add(at.hasOffset() ? at.offset() : -1));
                } catch (ExecutionException e) {
                    results.add(name(e.getCause()));
                }
            }
        }
        return JSON.createObjectNode().set("results", results);
    }

    static final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    static final Map<String, Boolean> open = new HashMap<>();

    static KafkaProducer<byte[], byte[]> transactional(JsonNode c) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("transactional.id", c.get("txid").asText());
        p.put("transaction.timeout.ms", text(c, "timeout_ms", "60000"));
        p.put("delivery.timeout.ms", "30000");
        p.put("request.timeout.ms", "10000");
        p.put("max.block.ms", "30000");
        KafkaProducer<byte[], byte[]> made = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
        made.initTransactions();
        return made;
    }

    static Object transaction(JsonNode c) throws Exception {
        String id = c.get("txid").asText();
        if (c.path("init").asBoolean()) producers.remove(id);
        KafkaProducer<byte[], byte[]> producer = producers.get(id);
        if (producer == null) {
            producers.put(id, producer = transactional(c));
            open.remove(id);
        }
        if (!open.getOrDefault(id, false)) producer.beginTransaction();
        open.put(id, true);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode r : c.get("records"))
            sent.add(producer.send(new ProducerRecord<>(c.get("topic").asText(), r.get("p").asInt(), payload(r.get("k")), payload(r.get("v")))));
        producer.flush();
        ArrayNode results = JSON.createArrayNode();
        for (Future<RecordMetadata> future : sent) {
            try {
                results.add(JSON.createArrayNode().add(future.get().partition()).add(future.get().offset()));
            } catch (ExecutionException e) {
                results.add(name(e.getCause()));
            }
        }
        if (c.has("offsets")) {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            c.get("offsets").get("offsets").fields().forEachRemaining(e -> offsets.put(
                new TopicPartition(c.get("offsets").get("topic").asText(), Integer.parseInt(e.getKey())), new OffsetAndMetadata(e.getValue().asLong())));
            producer.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(c.get("offsets").get("group").asText()));
        }
        String end = c.get("end").asText();
        if (end.equals("commit")) producer.commitTransaction();
        if (end.equals("abort")) producer.abortTransaction();
        if (!end.equals("open")) open.put(id, false);
        return JSON.createObjectNode().set("results", results);
    }

    // Read, process, write: a consumer and a producer for each transactional id, which stay.

    static final Map<String, Pipe> pipes = new HashMap<>();

    static class Pipe {
        KafkaConsumer<byte[], byte[]> consumer;
        KafkaProducer<byte[], byte[]> producer;
        Map<TopicPartition, OffsetAndMetadata> from, to;
        // As it stood when the records were read, not when they are committed.
        ConsumerGroupMetadata read;
    }

    static Pipe pipeOf(JsonNode c) throws Exception {
        Pipe pipe = pipes.get(c.get("txid").asText());
        if (pipe != null) return pipe;
        pipe = new Pipe();
        Map<String, String> more = new HashMap<>(protocol(c));
        more.putAll(Map.of("group.id", c.get("group").asText(), "auto.offset.reset", "earliest", "isolation.level", "read_committed", "max.poll.records", c.get("count").asText()));
        pipe.consumer = consumer(c, more);
        pipe.consumer.subscribe(List.of(c.get("source").asText()));
        pipe.producer = transactional(c);
        pipes.put(c.get("txid").asText(), pipe);
        return pipe;
    }

    static Object pipe(JsonNode c) throws Exception {
        Pipe pipe = pipeOf(c);
        pipe.from = new HashMap<>();
        pipe.to = new HashMap<>();
        List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
        long deadline = System.currentTimeMillis() + 60_000;
        while (got.size() < c.get("count").asInt() && System.currentTimeMillis() < deadline) pipe.consumer.poll(Duration.ofMillis(100)).forEach(got::add);
        pipe.read = pipe.consumer.groupMetadata();
        pipe.producer.beginTransaction();
        ArrayNode read = JSON.createArrayNode();
        for (ConsumerRecord<byte[], byte[]> r : got) {
            String value = new String(r.value(), StandardCharsets.UTF_8);
            read.add(value);
            pipe.producer.send(new ProducerRecord<>(c.get("topic").asText(), read.size() % 2, null, (value + "!").getBytes(StandardCharsets.UTF_8)));
            TopicPartition at = new TopicPartition(r.topic(), r.partition());
            pipe.from.putIfAbsent(at, new OffsetAndMetadata(r.offset()));
            pipe.to.put(at, new OffsetAndMetadata(r.offset() + 1));
        }
        pipe.producer.flush();
        String end = c.get("end").asText();
        if (end.equals("commit")) {
            pipe.producer.sendOffsetsToTransaction(pipe.to, pipe.read);
            pipe.producer.commitTransaction();
        }
        if (end.equals("abort")) {
            pipe.producer.sendOffsetsToTransaction(pipe.to, pipe.read);
            pipe.producer.abortTransaction();
            pipe.from.forEach((p, o) -> pipe.consumer.seek(p, o.offset()));
        }
        return JSON.createObjectNode().set("read", read);
    }

    /** Commits what the last step left open; where that is refused it is aborted. */
    static Object pipeEnd(JsonNode c) {
        Pipe pipe = pipes.get(c.get("txid").asText());
        try {
            pipe.producer.sendOffsetsToTransaction(pipe.to, pipe.read);
            pipe.producer.commitTransaction();
            return Map.of("committed", true, "told", "ok");
        } catch (Exception e) {
            try {
                pipe.producer.abortTransaction();
            } catch (Exception fenced) {
                // Who is fenced cannot abort either; the coordinator has done so.
            }
            return Map.of("committed", false, "told", name(e));
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer(JsonNode c, Map<String, String> more) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", text(c, "reset", "none"));
        p.put("isolation.level", text(c, "isolation", "").equals("committed") ? "read_committed" : "read_uncommitted");
        p.put("max.partition.fetch.bytes", text(c, "max_bytes", "1048576"));
        p.putAll(more);
        return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static Object fetch(JsonNode c) throws Exception {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(c, Map.of())) {
            List<TopicPartition> parts = parts(c);
            consumer.assign(parts);
            JsonNode from = c.get("from");
            if (from == null || from.isTextual()) consumer.seekToBeginning(parts);
            else if (from.has("off")) parts.forEach(p -> consumer.seek(p, from.get("off").asLong()));
            else {
                Map<TopicPartition, OffsetAndTimestamp> found = consumer.offsetsForTimes(parts.stream().collect(Collectors.toMap(p -> p, p -> from.get("ts").asLong())));
                Map<TopicPartition, Long> ends = consumer.endOffsets(parts);
                parts.forEach(p -> consumer.seek(p, found.get(p) == null ? ends.get(p) : found.get(p).offset()));
            }
            ArrayNode recs = JSON.createArrayNode();
            long deadline = System.currentTimeMillis() + c.get("timeout_ms").asLong();
            while (recs.size() < c.get("count").asInt() && System.currentTimeMillis() < deadline)
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(200))) {
                    ArrayNode headers = JSON.createArrayNode();
                    for (Header h : r.headers()) headers.add(JSON.createArrayNode().add(h.key()).add(shown(h.value())));
                    recs.add(JSON.createArrayNode().add(r.partition()).add(r.offset()).add(r.timestamp()).add(shown(r.key())).add(shown(r.value())).add(headers));
                }
            return JSON.createObjectNode().set("recs", recs);
        }
    }

    static Object offsets(JsonNode c) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(c, Map.of())) {
            Map<String, Long> out = new HashMap<>();
            if (c.get("at").isTextual()) {
                List<TopicPartition> parts = parts(c);
                (c.get("at").asText().equals("earliest") ? consumer.beginningOffsets(parts) : consumer.endOffsets(parts))
                    .forEach((p, o) -> out.put("" + p.partition(), o));
            } else {
                consumer.offsetsForTimes(parts(c).stream().collect(Collectors.toMap(p -> p, p -> c.get("at").get("ts").asLong())))
                    .forEach((p, o) -> out.put("" + p.partition(), o == null ? -1 : o.offset()));
            }
            return out;
        }
    }

    // Groups

    static Map<String, String> protocol(JsonNode c) {
        String assignor = c.get("assignor").asText();
        if (assignor.startsWith("server-")) {
            // KIP-848: the coordinator assigns, and says how often it wants to hear of a member.
            return Map.of("group.protocol", "consumer", "group.remote.assignor", assignor.substring("server-".length()));
        }
        return Map.of("partition.assignment.strategy", ASSIGNORS.get(assignor), "session.timeout.ms", text(c, "session_ms", "10000"), "heartbeat.interval.ms", "500");
    }

    static Object join(JsonNode c) {
        Map<String, String> more = new HashMap<>(protocol(c));
        more.putAll(Map.of("group.id", c.get("group").asText(), "auto.offset.reset", "earliest", "max.poll.records", "100"));
        if (c.hasNonNull("client")) more.put("client.id", c.get("client").asText());
        if (c.hasNonNull("static")) more.put("group.instance.id", c.get("static").asText());
        commitPolls = text(c, "commit", "poll").equals("poll");
        member = consumer(c, more);
        List<String> topics = new ArrayList<>();
        c.get("topics").forEach(t -> topics.add(t.asText()));
        if (c.hasNonNull("pattern")) member.subscribe(new SubscriptionPattern(c.get("pattern").asText()));
        else member.subscribe(topics);
        return null;
    }

    // Share groups. No poll but by command: what a member holds is part of the story.

    static KafkaShareConsumer<byte[], byte[]> sharer;
    static final Map<String, ConsumerRecord<byte[], byte[]>> held = new HashMap<>();

    static Object shareJoin(JsonNode c) {
        Map<String, Object> more = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", c.get("group").asText(),
            "share.acknowledgement.mode", text(c, "mode", "explicit"), "max.poll.records", text(c, "most", "500"),
            "share.acquire.mode", text(c, "acquire", "batch_optimized")));
        if (c.hasNonNull("client")) more.put("client.id", c.get("client").asText());
        sharer = new KafkaShareConsumer<>(more, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        sharer.subscribe(List.of(c.get("topic").asText()));
        return null;
    }

    static Object sharePoll(JsonNode c) throws Exception {
        long end = System.currentTimeMillis() + c.get("timeout_ms").asLong();
        ArrayNode got = JSON.createArrayNode();
        held.clear();
        while (got.isEmpty() && System.currentTimeMillis() < end)
            for (ConsumerRecord<byte[], byte[]> r : sharer.poll(Duration.ofMillis(100))) {
                held.put(r.partition() + ":" + r.offset(), r);
                got.add(JSON.createArrayNode().add(r.partition()).add(r.offset()).add(r.deliveryCount().orElse((short) -1)).add(shown(r.value())));
            }
        return got;
    }

    static Object shareAck(JsonNode c) throws Exception {
        Collection<AcknowledgeType> said = new ArrayList<>();
        c.get("words").fields().forEachRemaining(e -> {
            said.add(AcknowledgeType.valueOf(e.getValue().asText().toUpperCase()));
            sharer.acknowledge(held.get(e.getKey()), AcknowledgeType.valueOf(e.getValue().asText().toUpperCase()));
        });
        Map<String, String> told = new HashMap<>();
        sharer.commitSync().forEach((p, refused) -> told.put("" + p.partition(), refused.map(Driver::name).orElse("ok")));
        // What was renewed is handed out once more by this client's next poll, and can only then be acknowledged.
        if (said.contains(AcknowledgeType.RENEW)) sharePoll(JSON.createObjectNode().put("timeout_ms", 1000));
        return told;
    }

    static void poll() throws Exception {
        ConsumerRecords<byte[], byte[]> records = member.poll(Duration.ofMillis(100));
        List<String> now = member.assignment().stream().map(TopicPartition::toString).sorted().collect(Collectors.toList());
        if (!now.equals(assigned)) {
            assigned = now;
            ArrayNode parts = JSON.createArrayNode();
            for (TopicPartition p : member.assignment()) parts.add(JSON.createArrayNode().add(p.topic()).add(p.partition()));
            say((ObjectNode) JSON.createObjectNode().put("ev", "assign").set("parts", parts));
        }
        if (records.isEmpty()) return;
        ArrayNode recs = JSON.createArrayNode();
        for (ConsumerRecord<byte[], byte[]> r : records) recs.add(JSON.createArrayNode().add(r.topic()).add(r.partition()).add(r.offset()).add(shown(r.value())));
        say((ObjectNode) JSON.createObjectNode().put("ev", "recs").set("recs", recs));
        if (commitPolls) member.commitSync();
    }

    static Object committed(JsonNode c) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> found = admin().listConsumerGroupOffsets(c.get("group").asText()).partitionsToOffsetAndMetadata().get();
        Map<String, Long> out = new HashMap<>();
        for (TopicPartition p : parts(c)) out.put("" + p.partition(), found.get(p) == null ? -1 : found.get(p).offset());
        return out;
    }

    // Admin

    static Object describeTopic(JsonNode c) throws Exception {
        TopicDescription d = admin().describeTopics(List.of(c.get("name").asText())).allTopicNames().get().get(c.get("name").asText());
        return Map.of("partitions", d.partitions().size(),
            "leaders", d.partitions().stream().map(p -> p.leader().id()).collect(Collectors.toList()),
            "replicas", d.partitions().stream().map(p -> p.replicas().stream().map(n -> n.id()).collect(Collectors.toList())).collect(Collectors.toList()));
    }

    static ConfigResource resource(JsonNode c) {
        ConfigResource.Type type = ConfigResource.Type.valueOf(c.get("type").asText().toUpperCase());
        return new ConfigResource(type, c.get("name").asText());
    }

    static Object getConfig(JsonNode c) throws Exception {
        Map<String, String> out = new HashMap<>();
        for (ConfigEntry e : admin().describeConfigs(List.of(resource(c))).all().get().get(resource(c)).entries()) out.put(e.name(), e.value());
        return out;
    }

    static Object setConfig(JsonNode c) throws Exception {
        Collection<AlterConfigOp> ops = new ArrayList<>();
        strings(c.get("set")).forEach((k, v) -> ops.add(new AlterConfigOp(new ConfigEntry(k, v), AlterConfigOp.OpType.SET)));
        if (c.has("delete")) c.get("delete").forEach(k -> ops.add(new AlterConfigOp(new ConfigEntry(k.asText(), ""), AlterConfigOp.OpType.DELETE)));
        admin().incrementalAlterConfigs(Map.of(resource(c), ops)).all().get();
        return null;
    }

    static Object deleteRecords(JsonNode c) throws Exception {
        Map<TopicPartition, RecordsToDelete> wanted = new HashMap<>();
        c.get("upto").fields().forEachRemaining(e -> wanted.put(new TopicPartition(c.get("topic").asText(), Integer.parseInt(e.getKey())), RecordsToDelete.beforeOffset(e.getValue().asLong())));
        Map<String, Long> out = new HashMap<>();
        for (Map.Entry<TopicPartition, org.apache.kafka.common.KafkaFuture<DeletedRecords>> e : admin().deleteRecords(wanted).lowWatermarks().entrySet())
            out.put("" + e.getKey().partition(), e.getValue().get().lowWatermark());
        return out;
    }

    static Object describeGroup(JsonNode c) throws Exception {
        ConsumerGroupDescription d = admin().describeConsumerGroups(List.of(c.get("group").asText())).all().get().get(c.get("group").asText());
        return Map.of("state", d.groupState().toString(), "members", d.members().size());
    }
}
