import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringSerializer;

/** A broker asks its clients for metrics, and a producer sends them (KIP-714). Usage: Telemetry BOOTSTRAP TOPIC */
public class Telemetry {
    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0], "client.id", "observer"))) {
            ConfigResource subscription = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "producers");
            admin.incrementalAlterConfigs(Map.of(subscription, List.of(
                new AlterConfigOp(new ConfigEntry("metrics", "org.apache.kafka.producer."), AlterConfigOp.OpType.SET),
                new AlterConfigOp(new ConfigEntry("interval.ms", "500"), AlterConfigOp.OpType.SET)))).all().get();
            System.out.println(admin.describeConfigs(List.of(subscription)).all().get().size());
        }
        Thread.sleep(500); // until the broker has heard of it from the controller
        Map<String, Object> config = Map.of("bootstrap.servers", args[0], "client.id", "meter");
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < 3; i++) {
                producer.send(new ProducerRecord<>(args[1], "tick " + i)).get();
                Thread.sleep(400);
            }
        }
    }
}
