import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/**
 * A client from before SaslAuthenticate: its tokens follow the handshake bare, without a request header.
 *
 * Usage: OldSasl BOOTSTRAP MECHANISM LOGIN_MODULE [OPTIONS]
 */
public class OldSasl {
    public static void main(String[] args) {
        String deserializer = "org.apache.kafka.common.serialization.StringDeserializer";
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", args[0]);
        config.put("client.id", "alice");
        config.put("security.protocol", "SASL_PLAINTEXT");
        config.put("sasl.mechanism", args[1]);
        config.put("sasl.jaas.config", "org.apache.kafka.common.security." + args[2]
            + " required " + (args.length > 3 ? args[3] : "username=\"alice\" password=\"not-a-secret\"") + ";");
        config.put("key.deserializer", deserializer);
        config.put("value.deserializer", deserializer);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
            System.out.println(consumer.listTopics().keySet());
        }
    }
}
