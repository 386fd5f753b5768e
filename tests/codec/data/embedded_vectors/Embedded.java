import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.HexFormat;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metadata.UserScramCredentialRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.connect.runtime.distributed.ConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.ExtendedAssignment;
import org.apache.kafka.connect.runtime.distributed.ExtendedWorkerState;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeConnectProtocol;
import org.apache.kafka.connect.util.ConnectorTaskId;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.generated.ShareUpdateKey;
import org.apache.kafka.coordinator.share.generated.ShareUpdateValue;
import org.apache.kafka.coordinator.transaction.TransactionCoordinatorRecordSerde;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogKey;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogValue;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** What Kafka's own classes put into bytes fields and into its own topics: a name, the key or "-", the value, in hex. */
public final class Embedded {
    public static void main(String[] args) {
        members();
        workers();
        coordinators();
        metadata();
    }

    private static void members() {
        List<TopicPartition> owned = List.of(new TopicPartition("orders", 0), new TopicPartition("orders", 2));
        ByteBuffer data = ByteBuffer.wrap(new byte[] {1, 2, 3});
        Subscription subscription = new Subscription(List.of("orders", "payments"), data, owned, 7, Optional.of("rack-a"));
        Assignment assignment = new Assignment(owned, data);
        for (short version = 0; version <= 3; version++) {
            print("subscription-" + version, null, bytes(ConsumerProtocol.serializeSubscription(subscription, version)));
            print("assignment-" + version, null, bytes(ConsumerProtocol.serializeAssignment(assignment, version)));
        }
        StickyAssignor sticky = new StickyAssignor();
        sticky.onAssignment(assignment, new ConsumerGroupMetadata("g", 9, "m", Optional.empty()));
        print("sticky", null, subscribed(sticky.subscriptionUserData(Set.of("orders"))));
        CooperativeStickyAssignor cooperative = new CooperativeStickyAssignor();
        cooperative.onAssignment(assignment, new ConsumerGroupMetadata("g", 9, "m", Optional.empty()));
        print("cooperative-sticky", null, subscribed(cooperative.subscriptionUserData(Set.of("orders"))));
    }

    private static byte[] subscribed(ByteBuffer userData) {
        return bytes(ConsumerProtocol.serializeSubscription(new Subscription(List.of("orders"), userData)));
    }

    private static void workers() {
        List<ConnectorTaskId> tasks = List.of(new ConnectorTaskId("sink", 0), new ConnectorTaskId("sink", 1));
        print("connect-state-0", null, bytes(ConnectProtocol.serializeMetadata(new ConnectProtocol.WorkerState("http://w1", 5))));
        print("connect-assignment-0", null, bytes(ConnectProtocol.serializeAssignment(
            new ConnectProtocol.Assignment((short) 0, "w1", "http://w1", 5, List.of("source"), tasks))));
        for (short version = 1; version <= 2; version++) {
            ExtendedAssignment assignment = new ExtendedAssignment(
                version, (short) 0, "w1", "http://w1", 5, List.of(), tasks, List.of("source"), List.of(), 300_000);
            print("connect-assignment-" + version, null,
                bytes(IncrementalCooperativeConnectProtocol.serializeAssignment(assignment, version == 2)));
            print("connect-state-" + version, null, bytes(IncrementalCooperativeConnectProtocol.serializeMetadata(
                new ExtendedWorkerState("http://w1", 5, assignment), version == 2)));
        }
    }

    private static void coordinators() {
        GroupCoordinatorRecordSerde groups = new GroupCoordinatorRecordSerde();
        for (short version = 0; version <= 4; version++) {
            CoordinatorRecord commit = record(
                new OffsetCommitKey().setGroup("billing").setTopic("orders").setPartition(3),
                new OffsetCommitValue().setOffset(42).setMetadata("note").setCommitTimestamp(1_700_000_000_000L), version);
            print("offset-commit-" + version, groups.serializeKey(commit), groups.serializeValue(commit));
        }
        CoordinatorRecord gone = CoordinatorRecord.tombstone(
            new OffsetCommitKey().setGroup("billing").setTopic("orders").setPartition(3));
        print("offset-commit-tombstone", groups.serializeKey(gone), null);
        Subscription subscription = new Subscription(List.of("orders"));
        Assignment assignment = new Assignment(List.of(new TopicPartition("orders", 1)));
        CoordinatorRecord group = record(
            new GroupMetadataKey().setGroup("billing"),
            new GroupMetadataValue().setProtocolType("consumer").setGeneration(4).setProtocol("range").setLeader("m-1")
                .setCurrentStateTimestamp(1_700_000_000_000L).setMembers(List.of(new GroupMetadataValue.MemberMetadata()
                    .setMemberId("m-1").setClientId("app").setClientHost("/10.0.0.7")
                    .setRebalanceTimeout(60_000).setSessionTimeout(45_000)
                    .setSubscription(bytes(ConsumerProtocol.serializeSubscription(subscription)))
                    .setAssignment(bytes(ConsumerProtocol.serializeAssignment(assignment))))), (short) 3);
        print("group-metadata", groups.serializeKey(group), groups.serializeValue(group));
        CoordinatorRecord newer = record(
            new ConsumerGroupMetadataKey().setGroupId("billing"), new ConsumerGroupMetadataValue().setEpoch(12), (short) 0);
        print("consumer-group-metadata", groups.serializeKey(newer), groups.serializeValue(newer));

        TransactionCoordinatorRecordSerde transactions = new TransactionCoordinatorRecordSerde();
        CoordinatorRecord transaction = record(
            new TransactionLogKey().setTransactionalId("tx-1"),
            new TransactionLogValue().setProducerId(77).setProducerEpoch((short) 2).setTransactionTimeoutMs(60_000)
                .setTransactionStatus((byte) 1).setTransactionPartitions(List.of(new TransactionLogValue.PartitionsSchema()
                    .setTopic("orders").setPartitionIds(List.of(0, 1))))
                .setTransactionLastUpdateTimestampMs(10).setTransactionStartTimestampMs(9), (short) 0);
        print("transaction", transactions.serializeKey(transaction), transactions.serializeValue(transaction));

        ShareCoordinatorRecordSerde shares = new ShareCoordinatorRecordSerde();
        CoordinatorRecord share = record(
            new ShareUpdateKey().setGroupId("workers").setTopicId(new Uuid(1, 2)).setPartition(0),
            new ShareUpdateValue().setSnapshotEpoch(3).setLeaderEpoch(4).setStartOffset(100)
                .setStateBatches(List.of(new ShareUpdateValue.StateBatch()
                    .setFirstOffset(100).setLastOffset(109).setDeliveryState((byte) 2).setDeliveryCount((short) 1))), (short) 0);
        print("share-update", shares.serializeKey(share), shares.serializeValue(share));
    }

    private static CoordinatorRecord record(ApiMessage key, ApiMessage value, short version) {
        return CoordinatorRecord.record(key, new ApiMessageAndVersion(value, version));
    }

    private static void metadata() {
        write("topic", new TopicRecord().setName("orders").setTopicId(new Uuid(1, 2)));
        write("config", new ConfigRecord().setResourceType((byte) 4).setResourceName("1")
            .setName("log.cleaner.threads").setValue("2"));
        write("password", new ConfigRecord().setResourceType((byte) 4).setResourceName("1")
            .setName("listener.name.sasl.ssl.keystore.password").setValue("hunter2hunter2"));
        write("scram", new UserScramCredentialRecord().setName("alice").setMechanism((byte) 1)
            .setSalt("salt-salt-salt".getBytes()).setStoredKey("stored-stored".getBytes())
            .setServerKey("server-server".getBytes()).setIterations(4096));
    }

    private static void write(String name, ApiMessage message) {
        MetadataRecordSerde serde = new MetadataRecordSerde();
        ApiMessageAndVersion record = new ApiMessageAndVersion(message, (short) 0);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(serde.recordSize(record, cache));
        serde.write(record, cache, new ByteBufferAccessor(buffer));
        print("metadata-" + name, null, buffer.array());
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    private static void print(String name, byte[] key, byte[] value) {
        System.out.println(name + " " + hex(key) + " " + hex(value));
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "-" : HexFormat.of().formatHex(bytes);
    }
}
