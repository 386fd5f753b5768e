import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One client that authenticates and looks at the topics, and one that is turned away.
 *
 * Usage: Sasl BOOTSTRAP MECHANISM LOGIN_MODULE (its simple name says plain or scram)
 */
public class Sasl {
    public static void main(String[] args) {
        look(args, "not-a-secret");
        look(args, "wrong");
    }

    private static void look(String[] args, String password) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", args[0]);
        config.put("client.id", password.equals("wrong") ? "mallory" : "alice");
        config.put("security.protocol", "SASL_PLAINTEXT");
        config.put("sasl.mechanism", args[1]);
        config.put("sasl.jaas.config", "org.apache.kafka.common.security." + args[2]
            + " required username=\"alice\" password=\"" + password + "\";");
        try (KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            System.out.println(consumer.listTopics().keySet());
        } catch (SaslAuthenticationException expected) {
            System.out.println(expected.getMessage());
        }
    }
}
