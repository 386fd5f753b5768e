import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * Visits counted by Kafka Streams in windows of a minute and in sessions, and those of a window once more by page.
 *
 * Usage: ValuesWindows BOOTSTRAP
 */
public class ValuesWindows {
    static final Duration MINUTE = Duration.ofMinutes(1);

    public static void main(String[] args) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        var visits = builder.<String, String>stream("visits").groupByKey();
        visits.windowedBy(TimeWindows.ofSizeWithNoGrace(MINUTE)).count()
            .toStream()
            .groupBy((window, count) -> window,
                Grouped.with("by-window", new WindowedSerdes.TimeWindowedSerde<>(Serdes.String(), 60000), Serdes.Long()))
            .count();
        visits.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(MINUTE)).count();
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("application.id", "counter");
        settings.put("client.id", "counter");
        settings.put("state.dir", "state");
        settings.put("num.stream.threads", "1");
        settings.put("commit.interval.ms", "200");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        settings.put("consumer.auto.offset.reset", "earliest");
        long time = Instant.parse("2026-01-02T03:04:05Z").toEpochMilli();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", args[0], "client.id", "site"),
                new StringSerializer(), new StringSerializer())) {
            for (int visit = 0; visit < 3; visit++) {
                producer.send(new ProducerRecord<>("visits", 0, time + visit * 30000, "/start", "seen")).get();
            }
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        Thread.sleep(12000);
        streams.close(Duration.ofSeconds(5));
    }
}
