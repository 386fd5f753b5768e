import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A producer and a consumer over TLS, first in version 1.2, then in 1.3.
 *
 * Usage: Tls BOOTSTRAP TOPIC
 */
public class Tls {
    public static void main(String[] args) throws Exception {
        for (String version : List.of("TLSv1.2", "TLSv1.3")) {
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                     config(args[0], "vault", version), new StringSerializer(), new StringSerializer())) {
                for (int number = 0; number < 3; number++) {
                    producer.send(new ProducerRecord<>(args[1], "box-" + number, "gold ".repeat(50))).get();
                }
            }
            try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                     config(args[0], "auditor", version), new StringDeserializer(), new StringDeserializer())) {
                TopicPartition partition = new TopicPartition(args[1], 0);
                consumer.assign(List.of(partition));
                consumer.seekToBeginning(List.of(partition));
                int seen = 0;
                while (seen < 3) {
                    seen += consumer.poll(Duration.ofMillis(500)).count();
                }
            }
        }
    }

    private static Map<String, Object> config(String bootstrap, String clientId, String version) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("client.id", clientId);
        config.put("security.protocol", "SSL");
        config.put("ssl.enabled.protocols", version);
        config.put("ssl.protocol", version);
        config.put("ssl.truststore.type", "PEM");
        config.put("ssl.truststore.location", System.getProperty("recipe.certificate"));
        config.put("ssl.endpoint.identification.algorithm", "");
        config.put("enable.metrics.push", "false");
        return config;
    }
}
