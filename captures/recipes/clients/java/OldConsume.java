import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** A consumer group in the manner of its time, without batches of records. Usage: OldConsume BOOTSTRAP TOPIC COUNT */
public class OldConsume {
    public static void main(String[] args) {
        String deserializer = "org.apache.kafka.common.serialization.StringDeserializer";
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", args[0]);
        config.put("client.id", "archive");
        config.put("group.id", "archive");
        config.put("auto.offset.reset", "earliest");
        config.put("fetch.max.wait.ms", "200");
        config.put("key.deserializer", deserializer);
        config.put("value.deserializer", deserializer);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
            consumer.subscribe(Collections.singletonList(args[1]));
            int seen = 0;
            int failed = 0;
            while (seen < Integer.parseInt(args[2]) && failed < 5) {
                try {
                    seen += consumer.poll(300).count();
                } catch (RuntimeException refused) {
                    System.out.println(refused);
                    failed++;
                }
            }
            consumer.commitSync();
        }
    }
}
