import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A share group (KIP-932) accepts, releases and rejects records. Usage: ShareGroup BOOTSTRAP TOPIC [keep] */
public class ShareGroup {
    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0], "client.id", "dispatcher"))) {
            admin.incrementalAlterConfigs(Map.of(
                new ConfigResource(ConfigResource.Type.GROUP, "tasks"),
                List.of(new AlterConfigOp(
                    new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET)))).all().get();
            try (var producer = new KafkaProducer<>(
                    Map.<String, Object>of("bootstrap.servers", args[0], "client.id", "dispatch", "linger.ms", "50"),
                    new StringSerializer(), new StringSerializer())) {
                for (int i = 0; i < 3; i++) {
                    producer.send(new ProducerRecord<>(args[1], "task-" + i, "{\"do\": " + i + "}"));
                }
            }
            Map<String, Object> config = Map.of(
                "bootstrap.servers", args[0], "client.id", "worker", "group.id", "tasks", "fetch.max.wait.ms", "300",
                "share.acknowledgement.mode", "explicit");
            try (var consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of(args[1]));
                int done = 0;
                boolean released = false;
                while (done < 3) {
                    for (var record : consumer.poll(Duration.ofMillis(500))) {
                        if (record.key().equals("task-1") && !released) {
                            released = true;
                            consumer.acknowledge(record, AcknowledgeType.RELEASE);
                        } else {
                            done++;
                            consumer.acknowledge(
                                record, record.key().equals("task-2") ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
                        }
                    }
                    consumer.commitSync();
                }
                admin.describeShareGroups(List.of("tasks")).all().get();
            }
            if (args.length < 3) {
                // By name, because clients of 4.0 cannot.
                Object deleted = Admin.class.getMethod("deleteShareGroups", Collection.class).invoke(admin, List.of("tasks"));
                ((KafkaFuture<?>) deleted.getClass().getMethod("all").invoke(deleted)).get();
            }
        }
    }
}
