import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A client that authenticates and goes on asking, so that it has to authenticate again when its session runs out.
 *
 * Usage: SaslSession BOOTSTRAP MECHANISM SECONDS JAAS_CONFIG [CLIENT_SETTING=VALUE...]
 */
public class SaslSession {
    public static void main(String[] args) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", args[0]);
        config.put("client.id", "alice");
        config.put("security.protocol", "SASL_PLAINTEXT");
        config.put("sasl.mechanism", args[1]);
        config.put("sasl.jaas.config", args[3]);
        for (int i = 4; i < args.length; i++) {
            config.put(args[i].substring(0, args[i].indexOf('=')), args[i].substring(args[i].indexOf('=') + 1));
        }
        try (KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            System.out.println(consumer.listTopics().keySet());
            Instant end = Instant.now().plus(Duration.ofMillis((long) (1000 * Double.parseDouble(args[2]))));
            while (Instant.now().isBefore(end)) {
                Thread.sleep(300);
                System.out.println(consumer.listTopics().keySet());
            }
        }
    }
}
