import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * A Kafka Streams application that counts words, in two instances of which the second comes later and leaves first.
 *
 * Usage: WordCount BOOTSTRAP INPUT OUTPUT [SETTING=VALUE...]
 */
public class WordCount {
    static Topology topology(String input, String output) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(input)
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word)
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts")).withValueSerde(Serdes.Long()))
            .toStream().mapValues(count -> count.toString()).to(output);
        return builder.build();
    }

    static KafkaStreams start(String[] args, int instance) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("application.id", "word-count");
        settings.put("client.id", "counter-" + instance);
        settings.put("state.dir", "state-" + instance);
        settings.put("application.server", "10.9.0.2:" + (7000 + instance));
        settings.put("num.stream.threads", "1");
        settings.put("commit.interval.ms", "500");
        settings.put("poll.ms", "1000");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        settings.put("consumer.auto.offset.reset", "earliest");
        for (String setting : List.of(args).subList(3, args.length)) {
            settings.put(setting.split("=", 2)[0], setting.split("=", 2)[1]);
        }
        KafkaStreams streams = new KafkaStreams(topology(args[1], args[2]), settings);
        streams.start();
        long end = System.currentTimeMillis() + 30000;
        while (streams.state() != KafkaStreams.State.RUNNING && System.currentTimeMillis() < end) {
            Thread.sleep(100);
        }
        System.out.println("instance " + instance + " is " + streams.state());
        return streams;
    }

    static void write(String[] args, String... lines) {
        Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "client.id", "author", "linger.ms", "20");
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (String line : lines) {
                producer.send(new ProducerRecord<>(args[1], line.substring(0, 1), line));
            }
        }
    }

    /** Clients from 4.1 on can ask for the group; with older ones there is no such method. */
    static void describe(String[] args) throws Exception {
        String group = Arrays.stream(args).filter(arg -> arg.startsWith("application.id=")).findFirst().orElse("=word-count").split("=")[1];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0], "client.id", "librarian"))) {
            for (Method method : Admin.class.getMethods()) {
                if (method.getName().equals("describeStreamsGroups") && method.getParameterCount() == 1) {
                    Object result = method.invoke(admin, List.of(group));
                    KafkaFuture<?> all = (KafkaFuture<?>) result.getClass().getMethod("all").invoke(result);
                    all.get();
                    System.out.println("described");
                }
            }
        } catch (ExecutionException failed) {
            System.out.println(failed.getCause());
        }
    }

    public static void main(String[] args) throws Exception {
        write(args, "the tide comes in", "the tide goes out");
        KafkaStreams first = start(args, 1);
        KafkaStreams second = start(args, 2);
        write(args, "the boats go out", "and the nets come in");
        Thread.sleep(4000);
        describe(args);
        second.close(Duration.ofSeconds(10));
        Thread.sleep(1500);
        first.close(Duration.ofSeconds(10));
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", args[0], "client.id", "reader", "group.id", "readers", "auto.offset.reset", "earliest"));
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(args[2]));
            int seen = 0;
            for (int tries = 0; tries < 20 && seen < 5; tries++) {
                seen += consumer.poll(Duration.ofMillis(500)).count();
            }
            System.out.println(seen + " counts");
        }
    }
}
