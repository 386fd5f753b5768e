import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Steady traffic as a service makes it, for the benchmark: a producer writes JSON events, a group member reads them.
 *
 * Usage: BenchTraffic BOOTSTRAP TOPIC RECORDS COMPRESSION BATCH_BYTES
 * With BATCH_BYTES 0 every record is a request of its own, and every fetch returns as few as there are.
 */
public class BenchTraffic {
    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        String topic = args[1];
        int records = Integer.parseInt(args[2]);
        int batch = Integer.parseInt(args[4]);
        boolean single = batch == 0;

        Map<String, Object> consumerConfig = Map.of(
            "bootstrap.servers", bootstrap, "client.id", "billing-7", "group.id", "billing",
            "auto.offset.reset", "earliest", "max.poll.records", single ? "1" : "5000",
            "fetch.max.wait.ms", "100", "max.partition.fetch.bytes", single ? "1" : "200000");
        Map<String, Object> producerConfig = Map.of(
            "bootstrap.servers", bootstrap, "client.id", "checkout-3", "acks", "all", "compression.type", args[3],
            "linger.ms", single ? "0" : "20", "batch.size", String.valueOf(batch));
        Random random = new Random(7);
        try (KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(consumerConfig, new StringDeserializer(), new StringDeserializer());
             KafkaProducer<String, String> producer =
                 new KafkaProducer<>(producerConfig, new StringSerializer(), new StringSerializer())) {
            consumer.subscribe(List.of(topic));
            int seen = 0;
            for (int sent = 0; sent < records; sent++) {
                var future = producer.send(new ProducerRecord<>(topic, "order-" + random.nextInt(100000), event(random)));
                if (single) {
                    future.get();
                    seen += consumer.poll(Duration.ofMillis(50)).count();
                }
            }
            producer.flush();
            while (seen < records) {
                seen += consumer.poll(Duration.ofMillis(200)).count();
            }
            consumer.commitSync();
        }
    }

    /** An event of 150 to 250 bytes. */
    private static String event(Random random) {
        String[] states = {"created", "paid", "packed", "shipped", "delivered", "returned"};
        String[] cities = {"Amsterdam", "Berlin", "Copenhagen", "Lisbon", "Ljubljana", "Reykjavik", "Tallinn"};
        return String.format(
            "{\"event_id\":\"%016x\",\"order_id\":%d,\"customer_id\":%d,\"state\":\"%s\",\"city\":\"%s\","
                + "\"amount_cents\":%d,\"currency\":\"EUR\",\"items\":%d,\"at\":\"2026-01-%02dT%02d:%02d:%02dZ\"}",
            random.nextLong(), random.nextInt(1000000), random.nextInt(50000), states[random.nextInt(states.length)],
            cities[random.nextInt(cities.length)], random.nextInt(100000), 1 + random.nextInt(9),
            1 + random.nextInt(28), random.nextInt(24), random.nextInt(60), random.nextInt(60));
    }
}
