import java.io.FileReader;
import java.io.IOException;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ElectionNotNeededException;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The clients of the security story: a line on stdin is a command, a line on stdout its answer, `ok …` or `failed …`.
 *
 * A producer writes the numbers 0, 1, 2 …, by turns to every partition, and remembers which were acknowledged. `move` gives it another file of client
 * settings: a second producer connects, the first is flushed, the second goes on. Members of the group remember what they have read. `verify` reads the
 * whole topic: what was acknowledged must be there once, in order.
 */
public class Secured {
    private static Admin admin;
    private static String adminFile;
    private static String topic;
    private static int partitions;
    private static final Map<String, Load> loads = new TreeMap<>();
    private static final Map<String, Member> members = new TreeMap<>();
    /** What the group has read, and how many records it has read again. */
    private static final Map<String, BitSet> read = new ConcurrentHashMap<>();
    private static long readAgain;

    public static void main(String[] args) {
        // What the client's log says goes elsewhere than its answers.
        java.io.PrintStream answers = System.out;
        System.setOut(System.err);
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().trim().split(" ");
            String answer;
            try {
                answer = "ok " + obey(words);
            } catch (Exception error) {
                answer = "failed " + named(error);
            }
            answers.println(answer);
            answers.flush();
        }
        System.exit(0);
    }

    private static String named(Throwable error) {
        Throwable cause = error instanceof ExecutionException && error.getCause() != null ? error.getCause() : error;
        String below = cause.getCause() == null ? "" : "; " + named(cause.getCause());
        return (cause.getClass().getSimpleName() + ": " + cause.getMessage() + below).replace('\n', ' ');
    }

    private static String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "admin": return administer(words[1]);
            case "create": return create(words[1], Integer.parseInt(words[2]));
            case "insync": return inSync(Integer.parseInt(words[1]));
            case "elect": return elect();
            case "produce": {
                Load load = new Load(words[1], Integer.parseInt(words[2]), words[3]);
                loads.put(words[1], load);
                load.start();
                return "";
            }
            case "move": loads.get(words[1]).move(words[2]); return "";
            case "join": {
                Member member = new Member(words[1], words[2]);
                members.put(words[1], member);
                member.start();
                return "";
            }
            case "assigned": return String.valueOf(members.get(words[1]).assigned);
            case "leave": members.remove(words[1]).leave(); return "";
            case "pulse": return pulse();
            case "end": return end();
            case "drained": return String.valueOf(loads.values().stream().allMatch(Load::isReadByTheGroup));
            case "verify": return verify();
            case "attempt": return attempt(words[1]);
            default: throw new IllegalArgumentException("unknown command " + words[0]);
        }
    }

    private static Properties settings(String file) throws IOException {
        Properties properties = new Properties();
        try (FileReader reader = new FileReader(file)) {
            properties.load(reader);
        }
        return properties;
    }

    private static String administer(String file) throws Exception {
        Admin next = Admin.create(settings(file));
        next.describeCluster().nodes().get(30, TimeUnit.SECONDS);
        if (admin != null) {
            admin.close(Duration.ZERO);
        }
        admin = next;
        adminFile = file;
        return "";
    }

    private static String create(String name, int count) throws Exception {
        topic = name;
        partitions = count;
        admin.createTopics(List.of(new NewTopic(name, count, (short) 3).configs(Map.of("min.insync.replicas", "2")))).all().get(60, TimeUnit.SECONDS);
        return "";
    }

    /** Whether so many brokers are there, and each partition has a leader and all its replicas in sync. */
    private static String inSync(int brokers) throws Exception {
        if (admin.describeCluster().nodes().get(10, TimeUnit.SECONDS).size() != brokers) {
            return "false";
        }
        Set<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get(10, TimeUnit.SECONDS);
        return String.valueOf(admin.describeTopics(names).allTopicNames().get(10, TimeUnit.SECONDS).values().stream().flatMap(one -> one.partitions().stream())
            .allMatch(one -> one.leader() != null && !one.leader().isEmpty() && one.isr().size() == one.replicas().size()));
    }

    private static String elect() throws Exception {
        int moved = 0;
        for (var done : admin.electLeaders(ElectionType.PREFERRED, null).partitions().get(30, TimeUnit.SECONDS).entrySet()) {
            if (done.getValue().isPresent() && !(done.getValue().get() instanceof ElectionNotNeededException)) {
                throw new IllegalStateException(done.getKey() + ": " + done.getValue().get());
            }
            moved += done.getValue().isEmpty() ? 1 : 0;
        }
        return String.valueOf(moved);
    }

    /** How much is acknowledged, and the longest time that a producer waited for an acknowledgement of one partition since the last pulse. */
    private static String pulse() {
        long longest = 0;
        String whose = "-";
        for (Load load : loads.values()) {
            long gap = load.takeGap();
            if (gap > longest) {
                longest = gap;
                whose = load.name;
            }
        }
        return "acked=" + loads.values().stream().mapToLong(Load::acknowledged).sum() + " gap-ms=" + longest / 1_000_000 + " of=" + whose;
    }

    private static String end() throws Exception {
        for (Load load : loads.values()) {
            load.end();
        }
        return "sent=" + loads.values().stream().mapToLong(load -> load.sent).sum() + " acked=" + loads.values().stream().mapToLong(Load::acknowledged).sum()
            + " refused=" + loads.values().stream().mapToLong(load -> load.refused).sum() + loads.values().stream().map(Load::trouble).distinct().reduce("", String::concat);
    }

    /** Writes one record as this file says, and no more: `written`, or why not. */
    private static String attempt(String file) throws Exception {
        Properties properties = settings(file);
        properties.putAll(Map.of("max.block.ms", "15000", "delivery.timeout.ms", "15000", "request.timeout.ms", "10000", "linger.ms", "0"));
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, "stranger", "stranger 0")).get();
            return "written";
        } catch (Exception error) {
            return named(error);
        }
    }

    private static String verify() throws Exception {
        Properties properties = settings(adminFile);
        List<TopicPartition> all = IntStream.range(0, partitions).mapToObj(one -> new TopicPartition(topic, one)).toList();
        Map<String, BitSet> found = new TreeMap<>();
        Map<String, Integer> last = new TreeMap<>();
        long records = 0, doubled = 0, disordered = 0, foreign = 0;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            long until = System.nanoTime() + 120_000_000_000L;
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                if (System.nanoTime() > until) {
                    throw new IllegalStateException("the topic was not read to its end");
                }
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    records++;
                    if (!loads.containsKey(record.key())) {
                        foreign++;
                        continue;
                    }
                    int number = Integer.parseInt(record.value().trim());
                    BitSet numbers = found.computeIfAbsent(record.key(), name -> new BitSet());
                    doubled += numbers.get(number) ? 1 : 0;
                    numbers.set(number);
                    Integer before = last.put(record.key() + "-" + record.partition(), number);
                    disordered += before != null && before >= number ? 1 : 0;
                }
            }
        }
        long lost = 0, unread = 0;
        for (Load load : loads.values()) {
            lost += missing(load.acked, found.get(load.name));
            unread += missing(load.acked, read.get(load.name));
        }
        return "records=" + records + " lost=" + lost + " doubled=" + doubled + " disordered=" + disordered + " foreign=" + foreign + " unread=" + unread + " read-again=" + readAgain;
    }

    private static long missing(BitSet wanted, BitSet found) {
        BitSet missing = (BitSet) wanted.clone();
        if (found != null) {
            missing.andNot(found);
        }
        return missing.cardinality();
    }

    /** One application that writes, whatever producers it has over time. */
    private static final class Load extends Thread {
        final String name;
        final int rate;
        final BitSet acked = new BitSet();
        final long[] lastAck = new long[partitions];
        long longestGap;
        volatile int sent;
        volatile long refused;
        volatile String trouble;
        private volatile boolean ending;
        private KafkaProducer<String, String> producer;

        Load(String name, int rate, String file) throws Exception {
            this.name = name;
            this.rate = rate;
            producer = connected(file);
            setDaemon(true);
        }

        private static KafkaProducer<String, String> connected(String file) throws Exception {
            Properties properties = settings(file);
            properties.putAll(Map.of("acks", "all", "enable.idempotence", "true", "linger.ms", "5", "max.block.ms", "120000"));
            KafkaProducer<String, String> next = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
            next.partitionsFor(topic);
            return next;
        }

        @Override
        public void run() {
            long begun = System.nanoTime();
            try {
                while (!ending) {
                    synchronized (this) {
                        send(sent);
                        sent++;
                    }
                    long left = begun + sent * 1_000_000_000L / rate - System.nanoTime();
                    if (left > 0) {
                        Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
                    }
                }
            } catch (Exception error) {
                trouble = named(error);
            }
        }

        private void send(int number) {
            int partition = number % partitions;
            producer.send(new ProducerRecord<>(topic, partition, name, String.format("%-100d", number)), (metadata, error) -> {
                synchronized (acked) {
                    if (error != null) {
                        refused++;
                        trouble = named(error);
                        return;
                    }
                    acked.set(number);
                    long now = System.nanoTime();
                    if (lastAck[partition] > 0) {
                        longestGap = Math.max(longestGap, now - lastAck[partition]);
                    }
                    lastAck[partition] = now;
                }
            });
        }

        void move(String file) throws Exception {
            KafkaProducer<String, String> next = connected(file), old;
            synchronized (this) {
                old = producer;
                old.flush();
                producer = next;
            }
            old.close();
        }

        long takeGap() {
            synchronized (acked) {
                long now = System.nanoTime(), longest = longestGap;
                for (long last : lastAck) {
                    longest = Math.max(longest, last > 0 && !ending ? now - last : 0);
                }
                longestGap = 0;
                return longest;
            }
        }

        long acknowledged() {
            synchronized (acked) {
                return acked.cardinality();
            }
        }

        boolean isReadByTheGroup() {
            synchronized (read) {
                return missing(acked, read.get(name)) == 0;
            }
        }

        String trouble() {
            return trouble == null ? "" : " trouble=" + trouble.replace(' ', '_');
        }

        void end() throws Exception {
            ending = true;
            join(130_000);
            if (isAlive()) {
                throw new IllegalStateException(name + " does not end: " + trouble);
            }
            synchronized (this) {
                producer.close(Duration.ofSeconds(130));
            }
        }
    }

    /** A member of the group: commits what it has read. */
    private static final class Member extends Thread {
        volatile int assigned;
        private final KafkaConsumer<String, String> consumer;
        private volatile boolean leaving;
        private volatile String trouble;

        Member(String name, String file) throws IOException {
            super(name);
            Properties properties = settings(file);
            properties.putAll(Map.of("group.id", "billing", "auto.offset.reset", "earliest", "enable.auto.commit", "false", "client.id", name));
            consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
            setDaemon(true);
        }

        @Override
        public void run() {
            try (consumer) {
                consumer.subscribe(List.of(topic));
                while (!leaving) {
                    var records = consumer.poll(Duration.ofMillis(100));
                    assigned = consumer.assignment().size();
                    note(records);
                    commit();
                }
            } catch (Exception error) {
                trouble = named(error);
                error.printStackTrace();
            }
        }

        private static void note(Iterable<ConsumerRecord<String, String>> records) {
            synchronized (read) {
                for (ConsumerRecord<String, String> record : records) {
                    BitSet numbers = read.computeIfAbsent(record.key(), name -> new BitSet());
                    int number = Integer.parseInt(record.value().trim());
                    readAgain += numbers.get(number) ? 1 : 0;
                    numbers.set(number);
                }
            }
        }

        private void commit() {
            try {
                consumer.commitSync();
            } catch (CommitFailedException | RebalanceInProgressException error) {
                // Another member has the partitions, or will: what is not committed is read again, and counted.
            }
        }

        void leave() throws Exception {
            leaving = true;
            join(60_000);
            if (isAlive() || trouble != null) {
                throw new IllegalStateException(getName() + ": " + (trouble == null ? "does not leave" : trouble));
            }
        }
    }
}
