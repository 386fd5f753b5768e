import io.debezium.data.Envelope;
import io.debezium.time.MicroTimestamp;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.connect.data.Date;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.json.JsonConverter;

/**
 * A change event of Debezium by Connect's JsonConverter, with its schema and without.
 *
 * Usage: ValuesConnect BOOTSTRAP
 */
public class ValuesConnect {
    static final Schema ROW = SchemaBuilder.struct().name("shop.public.orders.Value").optional()
        .field("id", Schema.INT32_SCHEMA)
        .field("amount", Decimal.schema(2))
        .field("due", Date.SCHEMA)
        .field("placed", Timestamp.SCHEMA)
        .field("changed", MicroTimestamp.schema())
        .field("note", Schema.OPTIONAL_STRING_SCHEMA)
        .build();
    static final Schema SOURCE = SchemaBuilder.struct().name("io.debezium.connector.postgresql.Source")
        .field("connector", Schema.STRING_SCHEMA)
        .field("table", Schema.STRING_SCHEMA)
        .build();

    public static void main(String[] args) throws Exception {
        Struct row = new Struct(ROW)
            .put("id", 7)
            .put("amount", new BigDecimal("12.50"))
            .put("due", java.util.Date.from(Instant.parse("2026-02-01T00:00:00Z")))
            .put("placed", java.util.Date.from(Instant.parse("2026-01-02T03:04:05.678Z")))
            .put("changed", 1767323045678901L);
        Struct source = new Struct(SOURCE).put("connector", "postgresql").put("table", "orders");
        Envelope envelope = Envelope.defineSchema()
            .withName("shop.public.orders.Envelope").withRecord(ROW).withSource(SOURCE).build();
        Struct event = envelope.create(row, source, Instant.parse("2026-01-02T03:04:06Z"));
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", args[0], "client.id", "connector"),
                new ByteArraySerializer(), new ByteArraySerializer())) {
            for (boolean withSchema : new boolean[] {true, false}) {
                JsonConverter converter = new JsonConverter();
                converter.configure(Map.of("schemas.enable", withSchema), false);
                byte[] value = converter.fromConnectData("shop.public.orders", envelope.schema(), event);
                producer.send(new ProducerRecord<>("shop.public.orders", value)).get();
            }
        }
    }
}
