import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.LogEntry;
import org.apache.kafka.common.record.MemoryRecords;

/** Message sets of magic 0 written by the producer classes of kafka-clients 0.8.2 and 0.9.0, and read back by them. */
public class VectorsOld {
    public static void main(String[] args) throws Exception {
        for (CompressionType type : CompressionType.values()) {
            MemoryRecords records = MemoryRecords.emptyRecords(ByteBuffer.allocate(4096), type);
            for (int i = 0; i < 4; i++)
                records.append(i, i % 2 == 0 ? null : ("key-" + i).getBytes(), i == 2 ? null : ("value-" + i + "-".repeat(20)).getBytes());
            records.close();
            ByteBuffer wire = records.buffer().duplicate();
            if (wire.position() > 0) wire.flip(); // 0.8.2 leaves that to its caller
            MemoryRecords readable;
            try {
                readable = (MemoryRecords) MemoryRecords.class.getMethod("readableRecords", ByteBuffer.class).invoke(null, wire.duplicate());
            } catch (NoSuchMethodException older) {
                ByteBuffer unflipped = wire.duplicate().position(wire.limit()); // 0.8.2 flips it
                readable = (MemoryRecords) MemoryRecords.class.getMethod("iterableRecords", ByteBuffer.class).invoke(null, unflipped);
            }
            List<String> rows = new ArrayList<>();
            for (Iterator<LogEntry> entries = readable.iterator(); entries.hasNext(); ) {
                LogEntry entry = entries.next();
                rows.add(Json.record(entry.offset(), null, Json.bytes(entry.record().key()), Json.bytes(entry.record().value()), List.of()));
            }
            System.out.println("{\"name\":\"" + args[0] + " magic0 " + type.name + " produce\",\"wire\":" + Json.text(Json.bytes(wire))
                + ",\"compression\":\"" + type.name + "\",\"magic\":0,\"records\":" + rows + "}");
        }
    }
}
