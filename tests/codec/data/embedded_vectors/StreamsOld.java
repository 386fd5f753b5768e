import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.clients.consumer.internals.PartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.internals.PartitionAssignor.Subscription;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;

/** What an application of 1.1 tells one of 0.10.0 in a rolling upgrade, in lines like those of Embedded. */
public final class StreamsOld {
    public static void main(String[] args) {
        Set<TaskId> previous = Set.of(new TaskId(0, 1)), standby = Set.of(new TaskId(1, 2));
        TopicPartition orders = new TopicPartition("orders", 1);
        SubscriptionInfo subscription = new SubscriptionInfo(
            1, new UUID(0x0102030405060708L, 0x090a0b0c0d0e0f10L), previous, standby, "h1:8080");
        print("streams-old-subscription", ConsumerProtocol.serializeSubscription(
            new Subscription(List.of("orders"), subscription.encode())));
        AssignmentInfo assignment = new AssignmentInfo(1, List.of(new TaskId(0, 1)), Collections.emptyMap(),
            Map.of(new HostInfo("h1", 8080), Set.of(orders)));
        print("streams-old-assignment", ConsumerProtocol.serializeAssignment(
            new Assignment(List.of(orders), assignment.encode())));
    }

    private static void print(String name, ByteBuffer value) {
        StringBuilder text = new StringBuilder(name + " - ");
        while (value.hasRemaining()) {
            text.append(String.format("%02x", value.get()));
        }
        System.out.println(text);
    }
}
