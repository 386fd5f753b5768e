import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import kafka.api.ConsumerMetadataRequest;
import kafka.api.FetchRequestBuilder;
import kafka.api.PartitionOffsetRequestInfo;
import kafka.cluster.Broker;
import kafka.common.OffsetAndMetadata;
import kafka.common.TopicAndPartition;
import kafka.javaapi.ConsumerMetadataResponse;
import kafka.javaapi.OffsetCommitRequest;
import kafka.javaapi.OffsetFetchRequest;
import kafka.javaapi.OffsetRequest;
import kafka.javaapi.TopicMetadataRequest;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.network.BlockingChannel;

/**
 * The consumer of 2014 that does everything by hand: asks who leads and who coordinates, lists offsets, fetches, and
 * keeps its offsets in ZooKeeper (version 0) and in Kafka (version 1).
 *
 * Usage: OldOffsets BOOTSTRAP TOPIC
 */
public class OldOffsets {
    private static final String CLIENT = "bookkeeper";
    private static final String GROUP = "ledger";

    public static void main(String[] args) throws Exception {
        String host = args[0].split(":")[0];
        int port = Integer.parseInt(args[0].split(":")[1]);
        TopicAndPartition partition = new TopicAndPartition(args[1], 0);

        SimpleConsumer any = new SimpleConsumer(host, port, 10000, 65536, CLIENT);
        any.send(new TopicMetadataRequest(Arrays.asList(args[1], "no-such-topic")));
        Broker leader = any.send(new TopicMetadataRequest(Collections.singletonList(args[1])))
            .topicsMetadata().get(0).partitionsMetadata().get(0).leader();
        Broker coordinator = coordinator(host, port);

        SimpleConsumer reader = new SimpleConsumer(leader.host(), leader.port(), 10000, 65536, CLIENT);
        for (long time : new long[] {-2, -1}) {
            reader.getOffsetsBefore(new OffsetRequest(
                Collections.singletonMap(partition, new PartitionOffsetRequestInfo(time, 2)), (short) 0, CLIENT));
        }
        for (long offset : new long[] {0, 1000000}) {
            reader.fetch(new FetchRequestBuilder().clientId(CLIENT).addFetch(args[1], 0, offset, 100000).build());
        }
        reader.close();

        SimpleConsumer keeper = new SimpleConsumer(coordinator.host(), coordinator.port(), 10000, 65536, CLIENT);
        List<TopicAndPartition> asked = Arrays.asList(partition, new TopicAndPartition("no-such-topic", 3));
        for (short version = 0; version < 2; version++) {
            Map<TopicAndPartition, OffsetAndMetadata> offsets = Collections.singletonMap(
                partition, new OffsetAndMetadata(5 + version, "page " + version, OffsetAndMetadata.InvalidTime()));
            keeper.fetchOffsets(new OffsetFetchRequest(GROUP, asked, version, 1, CLIENT));
            keeper.commitOffsets(new OffsetCommitRequest(GROUP, offsets, 2, CLIENT, version));
            keeper.fetchOffsets(new OffsetFetchRequest(GROUP, asked, version, 3, CLIENT));
        }
        keeper.close();
        any.close();
    }

    /** Ask until the topic of offsets is there. */
    private static Broker coordinator(String host, int port) throws Exception {
        BlockingChannel channel = new BlockingChannel(host, port, 65536, 65536, 10000);
        channel.connect();
        try {
            while (true) {
                channel.send(new ConsumerMetadataRequest(GROUP, ConsumerMetadataRequest.CurrentVersion(), 1, CLIENT));
                ConsumerMetadataResponse answer = ConsumerMetadataResponse.readFrom(channel.receive().buffer());
                if (answer.errorCode() == 0) {
                    return answer.coordinator();
                }
                Thread.sleep(300);
            }
        } finally {
            channel.disconnect();
        }
    }
}
