import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Requests whose time goes to different places: one at a time, beyond a quota, waiting for replicas,
 * and waiting for records.
 *
 * Usage: Latency BOOTSTRAP prepare | serial | throttled | replicated | polling
 */
public class Latency {
    private static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        switch (args[1]) {
            case "prepare" -> prepare();
            case "serial" -> produce("serial", "alone", 200, Map.of("acks", "1"), 1, 100, 3);
            case "throttled" -> produce("throttled", "alone", 120, Map.of("acks", "1"), 6, 1000, 0);
            case "replicated" -> produce("replicated", "copied", 200, Map.of("acks", "all"), 1, 100, 3);
            default -> poll();
        }
    }

    private static void prepare() throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(
                new NewTopic("alone", 1, (short) 1), new NewTopic("copied", 1, (short) 3),
                new NewTopic("trickle", 1, (short) 1))).all().get();
            var entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, "throttled"));
            var rate = new ClientQuotaAlteration.Op("producer_byte_rate", 5_000.0);
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(rate)))).all().get();
        }
        // The first requests of a broker's life take as long as its classes take to load.
        for (String topic : List.of("alone", "copied", "trickle")) {
            produce("warm-up", topic, 1500, Map.of("acks", "all"), 5, 100, 0);
        }
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("warm-up")) {
            for (int polls = 0; polls < 300; polls++) {
                consumer.seekToBeginning(consumer.assignment());
                consumer.poll(Duration.ofMillis(20));
            }
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(String client, Map<String, Object> more, int inFlight) {
        Map<String, Object> config = new HashMap<>(Map.of(
            "bootstrap.servers", bootstrap, "client.id", client, "linger.ms", "0", "batch.size", "0",
            "enable.idempotence", "false", "max.in.flight.requests.per.connection", String.valueOf(inFlight)));
        config.putAll(more);
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** Records of their own requests, in bursts of as many as may be in flight. */
    private static void produce(
            String client, String topic, int records, Map<String, Object> more, int inFlight, int size, int pauseMs)
            throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(client, more, inFlight)) {
            for (int sent = 0; sent < records; sent += inFlight) {
                List<Future<RecordMetadata>> burst = new ArrayList<>();
                for (int n = 0; n < inFlight; n++) {
                    burst.add(producer.send(new ProducerRecord<>(topic, new byte[size])));
                }
                for (Future<RecordMetadata> one : burst) {
                    one.get();
                }
                Thread.sleep(pauseMs);
            }
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String client) {
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
            Map.of("bootstrap.servers", bootstrap, "client.id", client, "fetch.max.wait.ms", "100"),
            new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.assign(List.of(new TopicPartition("trickle", 0)));
        return consumer;
    }

    /** A consumer that has read everything: most polls bring nothing, some are answered by a record that comes. */
    private static void poll() throws Exception {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("polling");
             KafkaProducer<byte[], byte[]> producer = producer("trickling", Map.of("acks", "1"), 1)) {
            consumer.seekToEnd(consumer.assignment());
            long end = System.currentTimeMillis() + 15_000;
            for (int polls = 0; System.currentTimeMillis() < end; polls++) {
                consumer.poll(Duration.ofMillis(40));
                if (polls % 7 == 3) {
                    producer.send(new ProducerRecord<>("trickle", new byte[100]));
                }
            }
        }
    }
}
