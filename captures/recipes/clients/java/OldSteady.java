import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * A producer that wants all replicas and a group member that reads along, both patient, for as long as asked: what they
 * do when a leader goes. Usage: OldSteady BOOTSTRAP TOPIC SECONDS
 */
public class OldSteady {
    private static final String STRING = "org.apache.kafka.common.serialization.String";

    public static void main(String[] args) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", args[0]);
        config.put("client.id", "thermometer");
        config.put("acks", "all");
        config.put("retries", "100");
        config.put("retry.backoff.ms", "200");
        config.put("compression.type", "gzip");
        config.put("key.serializer", STRING + "Serializer");
        config.put("value.serializer", STRING + "Serializer");
        Map<String, Object> reading = new HashMap<>();
        reading.put("bootstrap.servers", args[0]);
        reading.put("client.id", "display");
        reading.put("group.id", "display");
        reading.put("auto.offset.reset", "earliest");
        reading.put("auto.commit.interval.ms", "1000");
        reading.put("heartbeat.interval.ms", "1000");
        reading.put("fetch.max.wait.ms", "300");
        reading.put("key.deserializer", STRING + "Deserializer");
        reading.put("value.deserializer", STRING + "Deserializer");
        long end = System.currentTimeMillis() + 1000 * Long.parseLong(args[2]);
        int sent = 0;
        int seen = 0;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config);
             KafkaConsumer<String, String> consumer = new KafkaConsumer<>(reading)) {
            consumer.subscribe(Collections.singletonList(args[1]));
            while (System.currentTimeMillis() < end) {
                producer.send(new ProducerRecord<>(args[1], "room-" + sent % 8, "{\"celsius\": " + sent++ + "}"));
                seen += consumer.poll(100).count();
                Thread.sleep(200);
            }
            producer.flush();
            while (seen < sent) {
                seen += consumer.poll(300).count();
            }
        }
        System.out.println(sent + " sent, " + seen + " seen");
    }
}
