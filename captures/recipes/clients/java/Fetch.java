import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A consumer without a group: it asks for offsets, seeks, reads a topic to its end, and waits for more in vain.
 *
 * Usage: Fetch BOOTSTRAP TOPIC COUNT
 */
public class Fetch {
    public static void main(String[] args) throws Exception {
        TopicPartition partition = new TopicPartition(args[1], 0);
        int count = Integer.parseInt(args[2]);
        Map<String, Object> config = Map.of(
            "bootstrap.servers", args[0], "client.id", "reader", "auto.offset.reset", "none", "fetch.max.wait.ms", "400",
            "max.partition.fetch.bytes", "2048", "isolation.level", "read_committed");
        try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            System.out.println(consumer.beginningOffsets(List.of(partition)) + " " + consumer.endOffsets(List.of(partition)));
            System.out.println(consumer.offsetsForTimes(Map.of(partition, 1767265200010L)));
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            int seen = 0;
            while (seen < count) {
                seen += consumer.poll(Duration.ofSeconds(1)).count();
            }
            consumer.poll(Duration.ofMillis(900));
            consumer.seek(partition, 1_000_000);
            consumer.poll(Duration.ofMillis(500));
        } catch (org.apache.kafka.clients.consumer.OffsetOutOfRangeException expected) {
            System.out.println(expected.getMessage());
        }
    }
}
