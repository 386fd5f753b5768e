import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A transaction that commits, with consumed offsets in it, one that aborts, a producer fenced by its successor, and
 * a reader that sees only what was committed.
 *
 * Usage: Transactions BOOTSTRAP SOURCE_TOPIC TARGET_TOPIC
 */
public class Transactions {
    public static void main(String[] args) throws Exception {
        String source = args[1];
        String target = args[2];
        Map<String, Object> reading = Map.of(
            "bootstrap.servers", args[0], "client.id", "transfer-in", "group.id", "transfer",
            "auto.offset.reset", "earliest", "enable.auto.commit", "false", "fetch.max.wait.ms", "200");
        Map<String, Object> writing = Map.of(
            "bootstrap.servers", args[0], "client.id", "transfer-out", "transactional.id", "transfer-1");
        try (var seed = new KafkaProducer<>(
                Map.<String, Object>of("bootstrap.servers", args[0], "client.id", "seed"),
                new StringSerializer(), new StringSerializer())) {
            seed.send(new ProducerRecord<>(source, "debit", "100")).get();
        }
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
             var producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            while (consumer.poll(Duration.ofMillis(500)).isEmpty()) { }

            producer.beginTransaction();
            producer.send(new ProducerRecord<>(target, "credit", "committed"));
            producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition(source, 0), new OffsetAndMetadata(1, "first transfer")), consumer.groupMetadata());
            producer.commitTransaction();

            producer.beginTransaction();
            producer.send(new ProducerRecord<>(target, "credit", "aborted")).get();
            producer.abortTransaction();

            try (var successor = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
                successor.initTransactions();
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(target, "credit", "from a fenced producer"));
                producer.commitTransaction();
            } catch (KafkaException expected) {
                System.out.println(expected.getMessage());
            }
        }
        Map<String, Object> committed = Map.of(
            "bootstrap.servers", args[0], "client.id", "auditor", "isolation.level", "read_committed",
            "fetch.max.wait.ms", "200");
        try (var consumer = new KafkaConsumer<>(committed, new StringDeserializer(), new StringDeserializer())) {
            TopicPartition partition = new TopicPartition(target, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            consumer.poll(Duration.ofSeconds(1)).forEach(record -> System.out.println(record.value()));
            consumer.poll(Duration.ofMillis(300));
        }
    }
}
