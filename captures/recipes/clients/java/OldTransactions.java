import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Transactions in the manner of 2017: one commits, with consumed offsets in it, one aborts, a producer is fenced, and a
 * reader sees only what was committed. Each transaction writes to every partition of the target, so that the
 * coordinator has markers for every broker.
 *
 * Usage: OldTransactions BOOTSTRAP SOURCE_TOPIC TARGET_TOPIC PARTITIONS
 */
public class OldTransactions {
    private static final String STRING = "org.apache.kafka.common.serialization.String";

    public static void main(String[] args) throws Exception {
        String source = args[1];
        String target = args[2];
        int partitions = Integer.parseInt(args[3]);
        try (KafkaProducer<String, String> seed = new KafkaProducer<>(config(args[0], "seed"))) {
            seed.send(new ProducerRecord<>(source, "debit", "100")).get();
        }
        Map<String, Object> reading = config(args[0], "transfer-in");
        reading.put("group.id", "transfer");
        reading.put("auto.offset.reset", "earliest");
        reading.put("enable.auto.commit", "false");
        Map<String, Object> writing = config(args[0], "transfer-out");
        writing.put("transactional.id", "transfer-1");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(reading);
             KafkaProducer<String, String> producer = new KafkaProducer<>(writing)) {
            producer.initTransactions();
            consumer.subscribe(Collections.singletonList(source));
            while (consumer.poll(500).isEmpty()) { }

            producer.beginTransaction();
            write(producer, target, partitions, "committed");
            producer.sendOffsetsToTransaction(Collections.singletonMap(
                new TopicPartition(source, 0), new OffsetAndMetadata(1, "first transfer")), "transfer");
            producer.commitTransaction();

            producer.beginTransaction();
            write(producer, target, partitions, "aborted");
            producer.flush();
            producer.abortTransaction();

            try (KafkaProducer<String, String> successor = new KafkaProducer<>(writing)) {
                successor.initTransactions();
                producer.beginTransaction();
                write(producer, target, 1, "from a fenced producer");
                producer.commitTransaction();
            } catch (KafkaException expected) {
                System.out.println(expected.getMessage());
            }
        }
        Map<String, Object> committed = config(args[0], "auditor");
        committed.put("isolation.level", "read_committed");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(committed)) {
            TopicPartition partition = new TopicPartition(target, 0);
            consumer.assign(Collections.singletonList(partition));
            consumer.seekToBeginning(Collections.singletonList(partition));
            System.out.println(consumer.poll(1000).count());
            consumer.poll(300);
        }
    }

    private static void write(KafkaProducer<String, String> producer, String topic, int partitions, String value) {
        for (int partition = 0; partition < partitions; partition++) {
            producer.send(new ProducerRecord<>(topic, partition, "credit", value));
        }
    }

    /** Settings for a producer or a consumer; each ignores the other's. */
    private static Map<String, Object> config(String bootstrap, String client) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("client.id", client);
        config.put("fetch.max.wait.ms", "200");
        config.put("key.serializer", STRING + "Serializer");
        config.put("value.serializer", STRING + "Serializer");
        config.put("key.deserializer", STRING + "Deserializer");
        config.put("value.deserializer", STRING + "Deserializer");
        return config;
    }
}
