import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A partition moves to the other broker behind the back of a producer and a consumer. Usage: MovedLeader BOOTSTRAP */
public class MovedLeader {
    public static void main(String[] args) throws Exception {
        TopicPartition partition = new TopicPartition("moving", 0);
        Map<String, Object> reading = Map.of(
            "bootstrap.servers", args[0], "client.id", "reader", "fetch.max.wait.ms", "200", "auto.offset.reset", "earliest");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0], "client.id", "balancer"));
             var producer = new KafkaProducer<>(
                 Map.<String, Object>of("bootstrap.servers", args[0], "client.id", "writer"),
                 new StringSerializer(), new StringSerializer());
             var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            admin.createTopics(List.of(new NewTopic("moving", Map.of(0, List.of(1))))).all().get();
            producer.send(new ProducerRecord<>("moving", "before", "on broker 1")).get();
            consumer.assign(List.of(partition));
            while (consumer.poll(Duration.ofMillis(300)).isEmpty()) { }

            admin.alterPartitionReassignments(
                Map.of(partition, Optional.of(new NewPartitionReassignment(List.of(2))))).all().get();
            while (!admin.listPartitionReassignments().reassignments().get().isEmpty()) {
                Thread.sleep(300);
            }
            Thread.sleep(700);
            producer.send(new ProducerRecord<>("moving", "after", "on broker 2")).get();
            while (consumer.poll(Duration.ofMillis(300)).isEmpty()) { }
        }
    }
}
