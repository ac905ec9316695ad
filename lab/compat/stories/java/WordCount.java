// Kafka Streams' word count and who feeds it, for ../streams.py.
//
// `WordCount run BOOTSTRAP PROTOCOL STATE_DIRECTORY [APPLICATION SOURCE SINK]`: the application, exactly_once_v2, until it is ended. PROTOCOL: classic or
// streams. Without names: word-count, from lines to totals.
// `WordCount feed BOOTSTRAP TOPIC`: sends standard input line by line; ends with 0 when every line was acknowledged.
//
// No cache stands before the store: every word that is counted is one record of the topic "totals", so that its counts are 1, 2, 3 … where
// each word was counted once.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

public class WordCount {
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "run":
                boolean named = args.length > 4;
                run(args[1], args[2], args[3], named ? args[4] : "word-count", named ? args[5] : "lines", named ? args[6] : "totals");
                break;
            case "feed": feed(args[1], args[2]); break;
            default: throw new IllegalArgumentException(args[0]);
        }
    }

    static void run(String bootstrap, String protocol, String directory, String application, String source, String sink) throws Exception {
        Properties settings = new Properties();
        settings.put("application.id", application);
        settings.put("bootstrap.servers", bootstrap);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("num.stream.threads", "2");
        settings.put("commit.interval.ms", "100");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("state.dir", directory);
        settings.put("replication.factor", "1");
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("reconnect.backoff.max.ms", "200");
        if (protocol.equals("streams")) {
            settings.put("group.protocol", "streams");
        } else {
            // A process that was killed is missed after so long. With the other protocol the broker says so.
            settings.put("consumer.session.timeout.ms", "3000");
            settings.put("consumer.heartbeat.interval.ms", "500");
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(source, Consumed.with(Serdes.ByteArray(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.trim().split("\\s+")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .to(sink, Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(settings), settings);
        streams.setStateListener((now, before) -> say("state " + now));
        streams.setUncaughtExceptionHandler(error -> {
            say("exception " + String.valueOf(error).replace('\n', ' ') + " because of " + String.valueOf(error.getCause()).replace('\n', ' '));
            error.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
        Thread.currentThread().join();
    }

    static synchronized void say(String text) {
        System.out.println(text);
        System.out.flush();
    }

    static void feed(String bootstrap, String topic) throws Exception {
        Properties settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", bootstrap, "acks", "all", "enable.idempotence", "true", "linger.ms", "5",
            "delivery.timeout.ms", "600000", "request.timeout.ms", "10000", "max.block.ms", "600000", "reconnect.backoff.max.ms", "200"));
        AtomicReference<Exception> failed = new AtomicReference<>();
        KafkaProducer<byte[], String> producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new StringSerializer());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null;)
            producer.send(new ProducerRecord<>(topic, line), (told, error) -> { if (error != null) failed.compareAndSet(null, error); });
        producer.close();
        if (failed.get() != null) throw failed.get();
    }
}
