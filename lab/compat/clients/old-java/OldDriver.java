// Apache's Java client of 2016 (0.9.0.1: message format 0, no timestamps, no headers, no admin) behind
// the runner's protocol (../PROTOCOL.md). Its API is another one than today's, hence a program of its own.

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
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class OldDriver {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor", "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor");

    static class Unsupported extends RuntimeException {
        Unsupported(String why) {
            super(why);
        }
    }

    static String bootstrap;
    static KafkaConsumer<byte[], byte[]> member;
    static boolean commitPolls;
    static TreeSet<String> assigned;

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
        } catch (Unsupported e) {
            reply.put("unsupported", e.getMessage());
        } catch (Throwable e) {
            Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
            reply.put("err", name(cause)).put("msg", String.valueOf(cause.getMessage()));
        }
        say(reply);
    }

    static String name(Throwable e) {
        if (e instanceof ApiException) {
            Errors error = Errors.forException(e);
            if (error != Errors.UNKNOWN) return error.name();
        }
        return e.getClass().getSimpleName();
    }

    static Object run(JsonNode c) throws Exception {
        switch (c.get("op").asText()) {
            case "produce": return produce(c);
            case "fetch": return fetch(c);
            case "offsets": return offsets(c);
            case "join": return join(c);
            case "commit": member.commitSync(); return null;
            case "leave": KafkaConsumer<byte[], byte[]> leaving = member; member = null; leaving.close(); return null;
            case "committed": return committed(c);
            default: throw new Unsupported("the Java client 0.9 has no " + c.get("op").asText());
        }
    }

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

    static TopicPartition[] parts(JsonNode c) {
        TopicPartition[] out = new TopicPartition[c.get("parts").size()];
        for (int i = 0; i < out.length; i++) out[i] = new TopicPartition(c.get("topic").asText(), c.get("parts").get(i).asInt());
        return out;
    }

    static String text(JsonNode c, String field, String otherwise) {
        return c != null && c.hasNonNull(field) ? c.get(field).asText() : otherwise;
    }

    static Object produce(JsonNode c) throws Exception {
        JsonNode config = c.get("config");
        if (text(config, "idempotent", "false").equals("true")) throw new Unsupported("the Java client 0.9 has no idempotent producer");
        if (text(config, "codec", "none").equals("zstd")) throw new Unsupported("the Java client 0.9 has no zstd");
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("acks", text(config, "acks", "all"));
        p.put("compression.type", text(config, "codec", "none"));
        p.put("linger.ms", text(config, "linger_ms", "5"));
        p.put("batch.size", text(config, "batch_bytes", "16384"));
        p.put("max.request.size", text(config, "max_bytes", "1048576"));
        p.put("request.timeout.ms", "10000");
        p.put("max.block.ms", "15000");
        ArrayNode results = JSON.createArrayNode();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode r : c.get("records")) {
                if (r.has("h")) throw new Unsupported("message format 0 has no headers");
                if (r.has("t")) throw new Unsupported("message format 0 has no timestamps");
                sent.add(producer.send(new ProducerRecord<>(c.get("topic").asText(), r.has("p") ? r.get("p").asInt() : null, payload(r.get("k")), payload(r.get("v")))));
            }
            for (Future<RecordMetadata> future : sent) {
                try {
                    RecordMetadata at = future.get();
                    results.add(JSON.createArrayNode().add(at.partition()).add(at.offset()));
                } catch (ExecutionException e) {
                    results.add(name(e.getCause()));
                }
            }
        }
        return JSON.createObjectNode().set("results", results);
    }

    static KafkaConsumer<byte[], byte[]> consumer(JsonNode c, Map<String, String> more) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("group.id", "compat-reader");
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", text(c, "reset", "none"));
        p.put("max.partition.fetch.bytes", text(c, "max_bytes", "1048576"));
        p.putAll(more);
        return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static Object fetch(JsonNode c) throws Exception {
        JsonNode from = c.get("from");
        if (from != null && from.has("ts")) throw new Unsupported("the Java client 0.9 cannot seek by time");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(c, Map.of())) {
            TopicPartition[] parts = parts(c);
            consumer.assign(List.of(parts));
            if (from == null || from.isTextual()) consumer.seekToBeginning(parts);
            else for (TopicPartition p : parts) consumer.seek(p, from.get("off").asLong());
            ArrayNode recs = JSON.createArrayNode();
            long deadline = System.currentTimeMillis() + c.get("timeout_ms").asLong();
            while (recs.size() < c.get("count").asInt() && System.currentTimeMillis() < deadline)
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(200))
                    recs.add(JSON.createArrayNode().add(r.partition()).add(r.offset()).add(-1).add(shown(r.key())).add(shown(r.value())).add(JSON.createArrayNode()));
            return JSON.createObjectNode().set("recs", recs);
        }
    }

    static Object offsets(JsonNode c) {
        if (!c.get("at").isTextual()) throw new Unsupported("the Java client 0.9 cannot ask for offsets by time");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(c, Map.of())) {
            TopicPartition[] parts = parts(c);
            consumer.assign(List.of(parts));
            if (c.get("at").asText().equals("earliest")) consumer.seekToBeginning(parts);
            else consumer.seekToEnd(parts);
            Map<String, Long> out = new HashMap<>();
            for (TopicPartition p : parts) out.put("" + p.partition(), consumer.position(p));
            return out;
        }
    }

    static Object join(JsonNode c) {
        String assignor = ASSIGNORS.get(c.get("assignor").asText());
        if (assignor == null) throw new Unsupported("the Java client 0.9 has no " + c.get("assignor").asText() + " assignor");
        if (c.hasNonNull("static")) throw new Unsupported("the Java client 0.9 has no static members");
        commitPolls = text(c, "commit", "poll").equals("poll");
        member = consumer(c, Map.of("group.id", c.get("group").asText(), "auto.offset.reset", "earliest", "partition.assignment.strategy", assignor,
            "session.timeout.ms", text(c, "session_ms", "10000"), "heartbeat.interval.ms", "500"));
        List<String> topics = new ArrayList<>();
        c.get("topics").forEach(t -> topics.add(t.asText()));
        member.subscribe(topics);
        return null;
    }

    static void poll() throws Exception {
        ConsumerRecords<byte[], byte[]> records = member.poll(100);
        TreeSet<String> now = new TreeSet<>();
        for (TopicPartition p : member.assignment()) now.add(p.toString());
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

    static Object committed(JsonNode c) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(c, Map.of("group.id", c.get("group").asText()))) {
            Map<String, Long> out = new HashMap<>();
            for (TopicPartition p : parts(c)) {
                OffsetAndMetadata found = consumer.committed(p);
                out.put("" + p.partition(), found == null ? -1 : found.offset());
            }
            return out;
        }
    }
}
