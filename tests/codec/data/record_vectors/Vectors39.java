import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.TimestampType;

/** Record sets written by kafka-clients 3.9.1, each with what the same library reads back from it. */
public class Vectors39 {
    static final long NOW = 1_700_000_000_000L;
    static final Header[] NO_HEADERS = new Header[0];

    public static void main(String[] args) throws Exception {
        for (byte magic = 0; magic <= 2; magic++)
            for (CompressionType type : CompressionType.values()) {
                if (type == CompressionType.ZSTD && magic < 2) continue;
                for (String shape : new String[] {"plain", "nulls", "large", "append_time", "gaps", "spread"}) {
                    if (shape.equals("append_time") && magic == 0) continue;
                    emit("3.9.1 magic" + magic + " " + type.name + " " + shape, legacyOrBatch(magic, type, shape), "");
                }
                if (magic < 2) continue;
                emit("3.9.1 magic2 " + type.name + " headers", withHeaders(type), "");
                emit("3.9.1 magic2 " + type.name + " transactional", transactional(type), "");
            }
        emit("3.9.1 mixed magics", mixed(), "");
        controls();
    }

    static MemoryRecords legacyOrBatch(byte magic, CompressionType type, String shape) {
        TimestampType stamp = shape.equals("append_time") ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        long base = shape.equals("plain") ? 0 : 4_294_967_296L;
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(512), magic,
            Compression.of(type).build(), stamp, base, NOW + 77);
        int step = shape.equals("gaps") ? 100 : 1;
        for (int i = 0; i < (shape.equals("spread") ? 70 : 4); i++) {
            byte[] key = ("key-" + i).getBytes();
            byte[] value = ("value-" + i).getBytes();
            long time = NOW + i;
            if (shape.equals("nulls")) {
                key = i % 2 == 0 ? null : key;
                value = i < 2 ? null : value;
                if (i == 3) { key = new byte[0]; value = new byte[0]; }
            }
            if (shape.equals("large")) value = repeated(new int[] {63, 64, 8192, 70000}[i]);
            if (shape.equals("large") && i == 2) key = repeated(200);
            if (shape.equals("spread")) time = NOW + new long[] {0, 100, -100, 10_000, -10_000, 5_000_000_000L, 64}[i % 7];
            builder.appendWithOffset(base + (long) i * step, time, key, value, NO_HEADERS);
        }
        return builder.build();
    }

    static MemoryRecords withHeaders(CompressionType type) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(512), (byte) 2,
            Compression.of(type).build(), TimestampType.CREATE_TIME, 10L);
        builder.append(NOW, "a".getBytes(), "1".getBytes(), new Header[] {
            new RecordHeader("traceparent", "00-0af7651916cd43dd8448eb211c80319c-01".getBytes()),
            new RecordHeader("", new byte[0]), new RecordHeader("gr\u00fc\u00dfe", null)});
        builder.append(NOW, (byte[]) null, null, new Header[] {new RecordHeader("long", repeated(300))});
        builder.append(NOW, "c".getBytes(), "3".getBytes(), NO_HEADERS);
        Header[] many = new Header[70];
        Arrays.setAll(many, i -> new RecordHeader("h" + i, new byte[] {(byte) i}));
        builder.append(NOW, "d".getBytes(), "4".getBytes(), many);
        return builder.build();
    }

    static MemoryRecords transactional(CompressionType type) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(512), (byte) 2,
            Compression.of(type).build(), TimestampType.CREATE_TIME, 20L, -1L, 4711L, (short) 3, 17, true, 9);
        for (int i = 0; i < 3; i++) builder.append(NOW + i, ("k" + i).getBytes(), ("v" + i).getBytes());
        return builder.build();
    }

    static MemoryRecords mixed() {
        ByteBuffer all = ByteBuffer.allocate(8192);
        all.put(legacyOrBatch((byte) 0, CompressionType.NONE, "nulls").buffer());
        all.put(legacyOrBatch((byte) 1, CompressionType.GZIP, "nulls").buffer());
        all.put(withHeaders(CompressionType.ZSTD).buffer());
        all.put(legacyOrBatch((byte) 1, CompressionType.NONE, "nulls").buffer());
        all.flip();
        return MemoryRecords.readableRecords(all);
    }

    static void controls() {
        for (ControlRecordType type : new ControlRecordType[] {ControlRecordType.COMMIT, ControlRecordType.ABORT})
            emit("3.9.1 control " + type.name().toLowerCase(),
                MemoryRecords.withEndTransactionMarker(33L, NOW, 5, 4711L, (short) 3, new EndTransactionMarker(type, 12)),
                "{\"type\":\"" + type.name().toLowerCase() + "\",\"version\":0,\"coordinator_epoch\":12}");
        emit("3.9.1 control leader_change", MemoryRecords.withLeaderChangeMessage(40L, NOW, 6, ByteBuffer.allocate(512),
            new LeaderChangeMessage().setVersion((short) 0).setLeaderId(3)
                .setVoters(Arrays.asList(new LeaderChangeMessage.Voter().setVoterId(1), new LeaderChangeMessage.Voter().setVoterId(3)))
                .setGrantingVoters(Arrays.asList(new LeaderChangeMessage.Voter().setVoterId(3)))),
            "{\"type\":\"leader_change\",\"version\":0,\"leader_id\":3,\"voters\":[{\"voter_id\":1},{\"voter_id\":3}],"
            + "\"granting_voters\":[{\"voter_id\":3}]}");
        emit("3.9.1 control snapshot_header", MemoryRecords.withSnapshotHeaderRecord(0L, NOW, 6, ByteBuffer.allocate(512),
            new SnapshotHeaderRecord().setVersion((short) 0).setLastContainedLogTimestamp(NOW - 5)),
            "{\"type\":\"snapshot_header\",\"version\":0,\"last_contained_log_timestamp\":" + (NOW - 5) + "}");
        emit("3.9.1 control snapshot_footer", MemoryRecords.withSnapshotFooterRecord(9L, NOW, 6, ByteBuffer.allocate(512),
            new SnapshotFooterRecord().setVersion((short) 0)),
            "{\"type\":\"snapshot_footer\",\"version\":0}");
        emit("3.9.1 control kraft_version", MemoryRecords.withKRaftVersionRecord(1L, NOW, 6, ByteBuffer.allocate(512),
            new KRaftVersionRecord().setVersion((short) 0).setKRaftVersion((short) 1)),
            "{\"type\":\"kraft_version\",\"version\":0,\"kraft_version\":1}");
        VotersRecord.EndpointCollection endpoints = new VotersRecord.EndpointCollection();
        endpoints.add(new VotersRecord.Endpoint().setName("CONTROLLER").setHost("node-1").setPort(9093));
        emit("3.9.1 control kraft_voters", MemoryRecords.withVotersRecord(2L, NOW, 6, ByteBuffer.allocate(512),
            new VotersRecord().setVersion((short) 0).setVoters(Arrays.asList(new VotersRecord.Voter().setVoterId(1)
                .setVoterDirectoryId(Uuid.fromString("Fhq1MSvsTTKzNIZ3xVmZ_A")).setEndpoints(endpoints)
                .setKRaftVersionFeature(new VotersRecord.KRaftVersionFeature().setMinSupportedVersion((short) 0)
                    .setMaxSupportedVersion((short) 1))))),
            "{\"type\":\"kraft_voters\",\"version\":0,\"voters\":[{\"voter_id\":1,\"voter_directory_id\":\"Fhq1MSvsTTKzNIZ3xVmZ_A\","
            + "\"endpoints\":[{\"name\":\"CONTROLLER\",\"host\":\"node-1\",\"port\":9093}],"
            + "\"kraft_version_feature\":{\"min_supported_version\":0,\"max_supported_version\":1}}]}");
    }

    static byte[] repeated(int size) {
        byte[] bytes = new byte[size];
        for (int i = 0; i < size; i++) bytes[i] = (byte) ('a' + i % 26);
        return bytes;
    }

    static void emit(String name, MemoryRecords records, String control) {
        ByteBuffer wire = records.buffer().duplicate();
        List<String> batches = new ArrayList<>();
        for (MutableRecordBatch batch : records.batches()) {
            List<String> rows = new ArrayList<>();
            for (Record record : batch) {
                List<String> headers = new ArrayList<>();
                for (Header header : record.headers())
                    headers.add("[" + Json.text(header.key().getBytes(java.nio.charset.StandardCharsets.UTF_8)) + "," + Json.text(header.value()) + "]");
                rows.add(Json.record(record.offset(), batch.magic() == 0 ? null : record.timestamp(),
                    Json.bytes(record.key()), Json.bytes(record.value()), headers));
            }
            batches.add("{\"magic\":" + batch.magic() + ",\"size_bytes\":" + batch.sizeInBytes()
                + ",\"last_offset\":" + batch.lastOffset() + ",\"max_timestamp\":" + batch.maxTimestamp()
                + ",\"compression\":\"" + batch.compressionType().name + "\",\"timestamp_type\":\"" + batch.timestampType()
                + "\",\"crc\":" + batch.checksum() + ",\"valid\":" + batch.isValid()
                + ",\"producer_id\":" + batch.producerId() + ",\"producer_epoch\":" + batch.producerEpoch()
                + ",\"base_sequence\":" + batch.baseSequence() + ",\"partition_leader_epoch\":" + batch.partitionLeaderEpoch()
                + ",\"is_transactional\":" + batch.isTransactional() + ",\"is_control\":" + batch.isControlBatch()
                + ",\"records\":" + rows + "}");
        }
        System.out.println("{\"name\":\"" + name + "\",\"wire\":" + Json.text(Json.bytes(wire))
            + (control.isEmpty() ? "" : ",\"control\":" + control) + ",\"batches\":" + batches + "}");
    }
}
