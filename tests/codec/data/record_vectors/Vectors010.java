import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.LogEntry;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.TimestampType;

/** Message sets of magic 0 and 1 written and read back by kafka-clients 0.10.2. */
public class Vectors010 {
    public static void main(String[] args) {
        for (byte magic = 0; magic <= 1; magic++)
            for (CompressionType type : CompressionType.values()) {
                for (long base : new long[] {0, 1000}) {
                    TimestampType stamp = magic == 1 && base > 0 ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
                    MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(512), magic, type, stamp, base, 1_480_000_000_999L);
                    for (int i = 0; i < 4; i++)
                        builder.append(1_480_000_000_000L + i, i % 2 == 0 ? null : ("key-" + i).getBytes(), i == 2 ? null : ("value-" + i).getBytes());
                    MemoryRecords records = builder.build();
                    List<String> rows = new ArrayList<>();
                    for (LogEntry entry : records.deepEntries())
                        rows.add(Json.record(entry.offset(), magic == 0 ? null : entry.record().timestamp(),
                            Json.bytes(entry.record().key()), Json.bytes(entry.record().value()), List.of()));
                    System.out.println("{\"name\":\"0.10.2.2 magic" + magic + " " + type.name + " from " + base + "\",\"wire\":"
                        + Json.text(Json.bytes(records.buffer().duplicate())) + ",\"compression\":\"" + type.name
                        + "\",\"magic\":" + magic + ",\"records\":" + rows + "}");
                }
            }
    }
}
