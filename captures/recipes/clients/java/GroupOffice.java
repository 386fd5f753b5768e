import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeStreamsGroupsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListStreamsGroupOffsetsSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * What the newest admin client does to groups and transactions, one errand an argument: GroupOffice BOOTSTRAP "groups" ...
 * An errand that fails says so, and the next one follows.
 */
public class GroupOffice {
    static Admin admin;

    public static void main(String[] args) throws Exception {
        admin = Admin.create(Map.of("bootstrap.servers", args[0], "client.id", "registrar"));
        for (String errand : List.of(args).subList(1, args.length)) {
            try {
                System.out.println(errand + ": " + run(errand.split(" ")));
            } catch (ExecutionException failed) {
                System.out.println(errand + ": " + failed.getCause());
            }
        }
        admin.close();
    }

    static Object run(String[] words) throws Exception {
        switch (words[0]) {
            case "groups":
                return admin.listGroups().all().get();
            case "streams":
                return admin.describeStreamsGroups(
                    List.of(words[1]), new DescribeStreamsGroupsOptions().includeTopologyDescription(true)
                        .includeAuthorizedOperations(true)).all().get();
            case "streams-offsets":
                return admin.listStreamsGroupOffsets(Map.of(words[1], new ListStreamsGroupOffsetsSpec()))
                    .partitionsToOffsetAndMetadata(words[1]).get();
            case "streams-reset":
                return admin.alterStreamsGroupOffsets(words[1], Map.of(partition(words[2]), new OffsetAndMetadata(0))).all().get();
            case "streams-delete":
                return admin.deleteStreamsGroups(List.of(words[1])).all().get();
            case "share":
                return admin.describeShareGroups(List.of(words[1])).all().get();
            case "share-offsets":
                return admin.listShareGroupOffsets(Map.of(words[1], new ListShareGroupOffsetsSpec())).all().get();
            case "share-reset":
                return admin.alterShareGroupOffsets(words[1], Map.of(partition(words[2]), 0L)).all().get();
            case "share-forget":
                return admin.deleteShareGroupOffsets(words[1], Set.of(words[2])).all().get();
            case "share-delete":
                return admin.deleteShareGroups(List.of(words[1])).all().get();
            case "consumer":
                return admin.describeConsumerGroups(List.of(words[1])).all().get();
            case "consumer-offsets":
                return admin.listConsumerGroupOffsets(Map.of(words[1], new ListConsumerGroupOffsetsSpec())).all().get();
            case "transactions":
                return admin.listTransactions().all().get();
            case "fence":
                return admin.fenceProducers(List.of(words[1])).all().get();
            case "terminate":
                return admin.forceTerminateTransaction(words[1]).result().get();
            case "abort":
                return admin.abortTransaction(new AbortTransactionSpec(
                    partition(words[1]), Long.parseLong(words[2]), Short.parseShort(words[3]), -1)).all().get();
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /** TOPIC:PARTITION. */
    static TopicPartition partition(String word) {
        return new TopicPartition(word.split(":")[0], Integer.parseInt(word.split(":")[1]));
    }
}
