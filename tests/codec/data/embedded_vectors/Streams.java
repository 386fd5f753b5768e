import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.AssignorError;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;

/** What the members of a Kafka Streams application tell each other, in lines like those of Embedded. */
public final class Streams {
    public static void main(String[] args) {
        UUID process = new UUID(0x0102030405060708L, 0x090a0b0c0d0e0f10L);
        TopicPartition orders = new TopicPartition("orders", 1), changelog = new TopicPartition("app-store-changelog", 2);
        HostInfo here = new HostInfo("h1", 8080), there = new HostInfo("h2", 8081);
        for (int version = 1; version <= 11; version++) {
            String topology = version == 10 ? "t\u00f6" : null;
            TaskId active = new TaskId(0, 1, topology), standby = new TaskId(1, 2, topology);
            Map<TaskId, Long> sums = new TreeMap<>(Map.of(active, -2L, standby, 77L));
            SubscriptionInfo info = new SubscriptionInfo(version, 11, new ProcessId(process), "h1:8080", sums, (byte) 3,
                AssignorError.SHUTDOWN_REQUESTED.code(), version == 11 ? Map.of("zone", "eu") : Map.of());
            print("streams-subscription-" + version, ConsumerProtocol.serializeSubscription(
                new Subscription(List.of("orders"), info.encode())));
            AssignmentInfo assignment = new AssignmentInfo(version, 11,
                List.of(active), Map.of(standby, Set.of(changelog)),
                Map.of(here, Set.of(orders)), Map.of(there, Set.of(changelog)), AssignorError.ASSIGNMENT_ERROR.code());
            if (version > 7) {
                assignment.setNextRebalanceTime(1_700_000_000_000L);
            }
            print("streams-assignment-" + version, ConsumerProtocol.serializeAssignment(
                new Assignment(List.of(orders), assignment.encode())));
        }
    }

    private static void print(String name, ByteBuffer value) {
        byte[] bytes = new byte[value.remaining()];
        value.get(bytes);
        System.out.println(name + " - " + HexFormat.of().formatHex(bytes));
    }
}
