import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Two members share a topic: the first joins, the second joins while the first works, the second leaves, then the
 * first. Records are written before and between.
 *
 * Usage: Group BOOTSTRAP TOPIC NAME=VALUE... (settings of the consumers)
 */
public class Group {
    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", args[0], "group.id", "warehouse", "auto.offset.reset", "earliest",
            "fetch.max.wait.ms", "300", "enable.auto.commit", "false"));
        for (int i = 2; i < args.length; i++) {
            String[] parts = args[i].split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        String topic = args[1];
        try (var producer = new KafkaProducer<>(
                Map.<String, Object>of("bootstrap.servers", args[0], "client.id", "shop"),
                new StringSerializer(), new StringSerializer())) {
            write(producer, topic);
            CountDownLatch firstStarted = new CountDownLatch(1);
            CountDownLatch secondDone = new CountDownLatch(1);
            Thread first = new Thread(() -> member(settings, topic, "member-1", firstStarted, secondDone));
            first.start();
            firstStarted.await();
            CountDownLatch secondStarted = new CountDownLatch(1);
            CountDownLatch enough = new CountDownLatch(1);
            Thread second = new Thread(() -> member(settings, topic, "member-2", secondStarted, enough));
            second.start();
            secondStarted.await();
            write(producer, topic);
            Thread.sleep(700);
            enough.countDown();
            second.join();
            Thread.sleep(1200);
            secondDone.countDown();
            first.join();
        }
    }

    private static void write(KafkaProducer<String, String> producer, String topic) {
        for (int i = 0; i < 4; i++) {
            producer.send(new ProducerRecord<>(topic, i % 4, "item-" + i, "{\"shelf\": " + i + "}"));
        }
        producer.flush();
    }

    /** Poll until told to stop; say so when there is an assignment. Commit what was read. */
    private static void member(
            Map<String, Object> settings, String topic, String name, CountDownLatch started, CountDownLatch stop) {
        Map<String, Object> own = new HashMap<>(settings);
        own.put("client.id", name);
        try (var consumer = new KafkaConsumer<>(own, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (stop.getCount() > 0) {
                if (consumer.poll(Duration.ofMillis(200)).count() > 0) {
                    consumer.commitSync();
                }
                if (!consumer.assignment().isEmpty()) {
                    started.countDown();
                }
            }
        }
    }
}
