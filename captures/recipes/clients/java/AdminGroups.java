import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Looking at and cleaning up consumer groups, with a static member alive. Usage: AdminGroups BOOTSTRAP TOPIC */
public class AdminGroups {
    /** A call whose failure is part of the recording. */
    interface Call {
        Object get() throws Exception;
    }

    static void attempt(String what, Call call) throws Exception {
        try {
            System.out.println(what + ": " + call.get());
        } catch (ExecutionException failed) {
            System.out.println(what + " failed: " + failed.getCause());
        }
    }

    public static void main(String[] args) throws Exception {
        TopicPartition partition = new TopicPartition(args[1], 0);
        Map<String, Object> config = Map.of(
            "bootstrap.servers", args[0], "client.id", "static-member", "group.id", "reports",
            "group.instance.id", "reports-0", "fetch.max.wait.ms", "200", "auto.offset.reset", "latest");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0], "client.id", "group-keeper"))) {
            try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of(args[1]));
                while (consumer.assignment().isEmpty()) {
                    consumer.poll(Duration.ofMillis(100));
                }
                consumer.commitSync(Map.of(partition, new OffsetAndMetadata(0, "a note beside the offset")));
                attempt("list", () -> admin.listGroups().all().get());
                attempt("describe", () -> admin.describeConsumerGroups(List.of("reports", "missing")).all().get());
                attempt("delete while in use", () -> admin.deleteConsumerGroups(List.of("reports")).all().get());
                attempt("offsets", () -> admin.listConsumerGroupOffsets(Map.of(
                    "reports", new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(partition)))).all().get());
            }
            attempt("remove", () -> admin.removeMembersFromConsumerGroup("reports",
                new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("reports-0")))).all().get());
            attempt("set offsets", () -> admin.alterConsumerGroupOffsets(
                "reports", Map.of(partition, new OffsetAndMetadata(0))).all().get());
            attempt("delete offsets", () -> admin.deleteConsumerGroupOffsets("reports", Set.of(partition)).all().get());
            attempt("delete", () -> admin.deleteConsumerGroups(List.of("reports", "missing")).all().get());
        }
    }
}
