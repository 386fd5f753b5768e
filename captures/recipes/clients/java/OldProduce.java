import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** A producer of the oldest kind, in the codecs of its time. Usage: OldProduce BOOTSTRAP TOPIC [CODEC]... */
public class OldProduce {
    public static void main(String[] args) throws Exception {
        String serializer = "org.apache.kafka.common.serialization.StringSerializer";
        String[] first = {"none", "gzip", "snappy", "lz4"};
        for (String codec : args.length > 2 ? Arrays.copyOfRange(args, 2, args.length) : first) {
            Map<String, Object> config = new HashMap<>();
            config.put("bootstrap.servers", args[0]);
            config.put("client.id", codec);
            config.put("compression.type", codec);
            config.put("linger.ms", "100");
            config.put("key.serializer", serializer);
            config.put("value.serializer", serializer);
            KafkaProducer<String, String> producer = new KafkaProducer<>(config);
            for (int i = 0; i < 8; i++) {
                producer.send(new ProducerRecord<>(args[1], i == 0 ? null : codec + "-" + i, "reading number " + i));
            }
            producer.close();
        }
    }
}
