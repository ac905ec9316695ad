// The admin of a chaos run: makes topics, moves partitions, says whether all is well, and writes down as history what it
// made and what is listed in the end (A18). A JSON command on each line of standard input, a JSON answer on each of
// standard output.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

public class Steward {
    static final ObjectMapper JSON = new ObjectMapper();
    static Admin admin;
    static FileOutputStream out;

    public static void main(String[] argv) throws Exception {
        admin = Admin.create(Map.of("bootstrap.servers", argv[0], "default.api.timeout.ms", "15000", "request.timeout.ms", "5000"));
        out = new FileOutputStream(argv[1], true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null;) {
            ObjectNode reply = JSON.createObjectNode();
            try {
                reply.set("ok", JSON.valueToTree(run(JSON.readTree(line))));
            } catch (Throwable e) {
                reply.put("err", String.valueOf(e instanceof ExecutionException ? e.getCause() : e));
            }
            System.out.println(reply);
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    static Object run(JsonNode c) throws Exception {
        switch (c.get("op").asText()) {
            case "create": create(c); return null;
            case "health": return health(c.has("without") ? c.get("without").asInt() : -1);
            case "move": return move(c);
            case "make": return make(c);
            case "listing": listing(); return null;
            case "committed": return committed(c);
            case "groups": return groups(c);
            case "leaders": return leaders(c);
            default: throw new IllegalArgumentException("no such operation");
        }
    }

    static Map<String, String> strings(JsonNode object) {
        Map<String, String> found = new HashMap<>();
        if (object != null) object.properties().forEach(e -> found.put(e.getKey(), e.getValue().asText()));
        return found;
    }

    static void create(JsonNode c) throws Exception {
        NewTopic topic = new NewTopic(c.get("name").asText(), c.get("parts").asInt(), (short) c.get("factor").asInt());
        try {
            admin.createTopics(List.of(topic.configs(strings(c.get("config"))))).all().get();
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof TopicExistsException)) throw e;
        }
    }

    static Map<String, TopicDescription> topics() throws Exception {
        Collection<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
        return admin.describeTopics(names).allTopicNames().get();
    }

    /** Brokers there, partitions without a leader, partitions whose ISR is not whole, moves under way. `gone`: this one is down, leads nothing, and is in no ISR. */
    static Object health(int gone) throws Exception {
        List<Integer> ids = new ArrayList<>();
        for (Node node : admin.describeCluster().nodes().get()) ids.add(node.id());
        Collections.sort(ids);
        int brokers = ids.size(), without = 0, thin = 0, all = 0;
        List<String> named = new ArrayList<>();
        for (TopicDescription topic : topics().values()) {
            for (TopicPartitionInfo p : topic.partitions()) {
                all++;
                if (p.leader() == null || p.leader().isEmpty() || p.leader().id() == gone) without++;
                long wanted = p.replicas().stream().filter(replica -> replica.id() != gone).count();
                boolean hasGone = p.isr().stream().anyMatch(member -> member.id() == gone);
                if (p.isr().size() < wanted || hasGone) {
                    thin++;
                    if (named.size() < 4) named.add(topic.name() + "-" + p.partition() + " leader " + (p.leader() == null ? "none" : p.leader().idString()) + " isr " + p.isr().size() + "/" + p.replicas().size());
                }
            }
        }
        return Map.of("brokers", brokers, "ids", ids, "leaderless", without, "thin", thin, "partitions", all, "moves",
            admin.listPartitionReassignments().reassignments().get().size(), "named", named);
    }

    static Object leaders(JsonNode c) throws Exception {
        ArrayNode found = JSON.createArrayNode();
        for (TopicPartitionInfo p : admin.describeTopics(List.of(c.get("topic").asText())).allTopicNames().get().values().iterator().next().partitions())
            found.add(p.leader() == null ? -1 : p.leader().id());
        return found;
    }

    static Object move(JsonNode c) throws Exception {
        List<Integer> to = new ArrayList<>();
        c.get("to").forEach(node -> to.add(node.asInt()));
        TopicPartition p = new TopicPartition(c.get("topic").asText(), c.get("p").asInt());
        admin.alterPartitionReassignments(Map.of(p, Optional.of(new NewPartitionReassignment(to)))).all().get();
        return true;
    }

    // What is made on the way and looked for in the end

    static void say(String op, String phase, ObjectNode rest) throws Exception {
        ObjectNode line = JSON.createObjectNode().put("t", System.nanoTime()).put("c", "steward").put("op", op).put("ph", phase);
        line.setAll(rest);
        out.write((line + "\n").getBytes(StandardCharsets.UTF_8));
    }

    static ConfigResource resource(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    /** Sets one thing: a topic (its partitions; nothing: deleted), or a topic's retention. */
    static Object make(JsonNode c) throws Exception {
        String kind = c.get("kind").asText(), name = c.get("name").asText(), set = c.hasNonNull("set") ? c.get("set").asText() : null;
        ObjectNode rest = JSON.createObjectNode().put("kind", kind).put("name", name).put("set", set);
        say("admin", "invoke", rest);
        try {
            if (kind.equals("retention")) {
                AlterConfigOp op = new AlterConfigOp(new ConfigEntry("retention.ms", set), AlterConfigOp.OpType.SET);
                admin.incrementalAlterConfigs(Map.of(resource(name), List.of(op))).all().get();
            } else if (set != null) {
                admin.createTopics(List.of(new NewTopic(name, Integer.parseInt(set), (short) c.get("factor").asInt()))).all().get();
            } else {
                admin.deleteTopics(List.of(name)).all().get();
            }
            say("admin", "ok", rest);
            return "ok";
        } catch (Exception e) {
            Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
            // A try that was lost on the way may have done it.
            say("admin", "info", rest.put("err", cause.getClass().getSimpleName()));
            return cause.getClass().getSimpleName();
        }
    }

    static void listing() throws Exception {
        ObjectNode partitions = JSON.createObjectNode(), retention = JSON.createObjectNode();
        List<ConfigResource> resources = new ArrayList<>();
        for (TopicDescription topic : topics().values()) {
            partitions.put(topic.name(), Integer.toString(topic.partitions().size()));
            resources.add(resource(topic.name()));
        }
        for (Map.Entry<ConfigResource, Config> e : admin.describeConfigs(resources).all().get().entrySet())
            retention.put(e.getKey().name(), e.getValue().get("retention.ms").value());
        ObjectNode rest = JSON.createObjectNode().put("kind", "topic");
        rest.set("values", partitions);
        say("listing", "ok", rest);
        rest = JSON.createObjectNode().put("kind", "retention");
        rest.set("values", retention);
        say("listing", "ok", rest);
    }

    static Object committed(JsonNode c) throws Exception {
        Map<String, Map<String, Long>> found = new TreeMap<>();
        for (JsonNode group : c.get("groups")) {
            Map<String, Long> of = new TreeMap<>();
            admin.listConsumerGroupOffsets(group.asText()).partitionsToOffsetAndMetadata().get().forEach((p, o) -> {
                if (o != null) of.put(p.toString(), o.offset());
            });
            found.put(group.asText(), of);
        }
        return found;
    }

    /** What the coordinators say of groups: for words about those that do not move. */
    static Object groups(JsonNode c) throws Exception {
        Map<String, String> found = new TreeMap<>();
        for (JsonNode group : c.get("groups")) {
            String name = group.asText();
            ConsumerGroupDescription told = admin.describeConsumerGroups(List.of(name)).describedGroups().get(name).get();
            StringBuilder members = new StringBuilder();
            told.members().forEach(m -> members.append(' ').append(m.clientId()).append(m.assignment().topicPartitions()));
            found.put(name, told.groupState() + " at " + told.coordinator().id() + members);
        }
        return found;
    }
}
