import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Avro by Apicurio's serializer: the content id in front, the global id in eight bytes in front, and in a header.
 *
 * Usage: ValuesApicurio BOOTSTRAP REGISTRY
 */
public class ValuesApicurio {
    static final Schema READING = new Schema.Parser().parse(
        "{\"type\":\"record\",\"name\":\"Reading\",\"namespace\":\"field\",\"fields\":["
            + "{\"name\":\"station\",\"type\":\"string\"},{\"name\":\"celsius\",\"type\":\"double\"}]}");

    static void send(String[] args, String topic, double celsius, Map<String, Object> more) throws Exception {
        Map<String, Object> settings = new java.util.HashMap<>(Map.of(
            "bootstrap.servers", args[0],
            "client.id", "station",
            "apicurio.registry.url", args[1],
            "apicurio.registry.auto-register", true));
        settings.putAll(more);
        AvroKafkaSerializer<GenericRecord> serializer = new AvroKafkaSerializer<>();
        serializer.configure(settings, false);
        GenericRecord reading = new GenericData.Record(READING);
        reading.put("station", "north");
        reading.put("celsius", celsius);
        try (KafkaProducer<String, GenericRecord> producer =
                new KafkaProducer<>(settings, new StringSerializer(), serializer)) {
            producer.send(new ProducerRecord<>(topic, "north", reading)).get();
        }
    }

    public static void main(String[] args) throws Exception {
        send(args, "by-content-id", 1.5, Map.of());
        send(args, "by-global-id", 2.5, Map.of(
            "apicurio.registry.use-id", "globalId",
            "apicurio.registry.id-handler", "io.apicurio.registry.serde.Legacy8ByteIdHandler"));
        send(args, "by-header", 3.5, Map.of(
            "apicurio.registry.headers.enabled", true, "apicurio.registry.use-id", "globalId"));
    }
}
