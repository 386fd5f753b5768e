import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A deployment script creates a topic that is there already, a shop writes orders to it, billing reads them. */
public class FirstLook {
    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "client.id", "deploy"))) {
            admin.createTopics(List.of(new NewTopic("orders", 1, (short) 1))).all().get();
        } catch (ExecutionException expected) {
            System.out.println(expected.getCause().getMessage());
        }

        Map<String, Object> shop = Map.of(
            "bootstrap.servers", bootstrap, "client.id", "shop", "compression.type", "zstd", "linger.ms", "50");
        try (var producer = new KafkaProducer<>(shop, new StringSerializer(), new StringSerializer())) {
            String[] customers = {"ada", "grace", "edsger", "barbara", "tony"};
            for (int i = 0; i < customers.length; i++) {
                String value = String.format(
                    "{\"order\": %d, \"customer\": \"%s\", \"amount\": %.2f, \"currency\": \"EUR\"}",
                    1001 + i, customers[i], 19.9 + 7 * i);
                producer.send(new ProducerRecord<>("orders", customers[i], value));
            }
        }

        Map<String, Object> billing = Map.of(
            "bootstrap.servers", bootstrap, "client.id", "billing", "group.id", "billing",
            "auto.offset.reset", "earliest", "fetch.max.wait.ms", "250");
        try (var consumer = new KafkaConsumer<>(billing, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("orders"));
            int seen = 0;
            while (seen < 5) {
                seen += consumer.poll(Duration.ofSeconds(1)).count();
            }
            consumer.commitSync();
        }
    }
}
