import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A producer per compression codec, each with a batch of alike records; then the odd records and the odd settings.
 *
 * Usage: Produce BOOTSTRAP TOPIC
 */
public class Produce {
    private static final long NOON = 1767265200000L; // 2026-01-01T11:00:00Z

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        for (String codec : new String[] {"none", "gzip", "snappy", "lz4", "zstd"}) {
            try (var producer = producer(args[0], Map.of("client.id", codec, "compression.type", codec))) {
                for (int i = 0; i < 20; i++) {
                    String value = "{\"sensor\": \"greenhouse-" + i % 4 + "\", \"celsius\": " + (18 + i) + "}";
                    producer.send(new ProducerRecord<>(topic, 0, NOON + i, codec + "-" + i, value));
                }
            }
        }
        try (var producer = producer(args[0], Map.of("client.id", "odd-records"))) {
            var withHeaders = new ProducerRecord<>(topic, 0, NOON, "with headers", "value");
            withHeaders.headers()
                .add("trace-id", "4bf92f3577b34da6".getBytes(StandardCharsets.UTF_8))
                .add("binary", new byte[] {0, (byte) 0xff, 0x10})
                .add("empty", new byte[0])
                .add("null", null)
                .add("trace-id", "a second one".getBytes(StandardCharsets.UTF_8));
            producer.send(withHeaders);
            producer.send(new ProducerRecord<>(topic, 0, NOON, null, "no key"));
            producer.send(new ProducerRecord<>(topic, 0, NOON, "tombstone", (String) null));
            producer.send(new ProducerRecord<>(topic, 0, NOON, "", ""));
            producer.send(new ProducerRecord<>(topic, 0, NOON + 86_400_000L, "unicode \u2603", "\u017eiv\u00ed jo \ud83d\ude80"));
        }
        try (var producer = producer(args[0], Map.of("client.id", "acks-0", "acks", "0", "enable.idempotence", "false"))) {
            producer.send(new ProducerRecord<>(topic, 0, NOON, "fire", "and forget")).get();
            producer.send(new ProducerRecord<>(topic, 0, NOON, "fire", "and forget again")).get();
        }
        try (var producer = producer(args[0], Map.of("client.id", "acks-1", "acks", "1", "enable.idempotence", "false"))) {
            producer.send(new ProducerRecord<>(topic, 0, NOON, "one", "leader's word is enough")).get();
        }
        try (var producer = producer(args[0], Map.of("client.id", "too-large"))) {
            producer.send(new ProducerRecord<>("small-" + topic, "too large", "x".repeat(3000))).get();
        } catch (ExecutionException expected) {
            System.out.println(expected.getCause().getMessage());
        }
    }

    private static KafkaProducer<String, String> producer(String bootstrap, Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", "100"));
        config.putAll(more);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }
}
