import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Label;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Apicurio's serializers: the content id in front, the global id in eight bytes in front, and in a header.
 *
 * Usage: ValuesApicurio BOOTSTRAP REGISTRY
 */
public class ValuesApicurio {
    static final Schema READING = new Schema.Parser().parse(
        "{\"type\":\"record\",\"name\":\"Reading\",\"namespace\":\"field\",\"fields\":["
            + "{\"name\":\"station\",\"type\":\"string\"},{\"name\":\"celsius\",\"type\":\"double\"}]}");
    static final Map<String, Object> IN_HEADERS = Map.of(
        "apicurio.registry.headers.enabled", true, "apicurio.registry.use-id", "globalId");

    static <T> void send(String[] args, String topic, Serializer<T> serializer, T value, Map<String, Object> more)
            throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", args[0],
            "client.id", "station",
            "apicurio.registry.url", args[1],
            "apicurio.registry.auto-register", true));
        settings.putAll(more);
        serializer.configure(settings, false);
        try (KafkaProducer<String, T> producer = new KafkaProducer<>(settings, new StringSerializer(), serializer)) {
            producer.send(new ProducerRecord<>(topic, "north", value)).get();
        }
    }

    static void avro(String[] args, String topic, double celsius, Map<String, Object> more) throws Exception {
        GenericRecord reading = new GenericData.Record(READING);
        reading.put("station", "north");
        reading.put("celsius", celsius);
        send(args, topic, new AvroKafkaSerializer<GenericRecord>(), reading, more);
    }

    static FieldDescriptorProto field(String name, int number, Type type) {
        return FieldDescriptorProto.newBuilder()
            .setName(name).setNumber(number).setType(type).setLabel(Label.LABEL_OPTIONAL).build();
    }

    static void protobuf(String[] args, String topic, int watts, Map<String, Object> more) throws Exception {
        FileDescriptor file = FileDescriptor.buildFrom(FileDescriptorProto.newBuilder()
            .setName("meter.proto").setPackage("field").setSyntax("proto3")
            .addMessageType(DescriptorProto.newBuilder().setName("Site").addField(field("name", 1, Type.TYPE_STRING)))
            .addMessageType(DescriptorProto.newBuilder().setName("Meter")
                .addField(field("station", 1, Type.TYPE_STRING)).addField(field("watts", 2, Type.TYPE_INT32)))
            .build(), new FileDescriptor[0]);
        Descriptor meter = file.findMessageTypeByName("Meter");
        DynamicMessage message = DynamicMessage.newBuilder(meter)
            .setField(meter.findFieldByName("station"), "north")
            .setField(meter.findFieldByName("watts"), watts).build();
        send(args, topic, new ProtobufKafkaSerializer<DynamicMessage>(), message, more);
    }

    public static void main(String[] args) throws Exception {
        avro(args, "by-content-id", 1.5, Map.of());
        avro(args, "by-global-id", 2.5, Map.of(
            "apicurio.registry.use-id", "globalId",
            "apicurio.registry.id-handler", "io.apicurio.registry.serde.Legacy8ByteIdHandler"));
        avro(args, "by-header", 3.5, IN_HEADERS);
        Map<String, Object> inJson = new HashMap<>(IN_HEADERS);
        inJson.put("apicurio.registry.avro.encoding", "JSON");
        avro(args, "in-json", 4.5, inJson);
        protobuf(args, "meters", 5, Map.of());
        protobuf(args, "meters-by-header", 6, IN_HEADERS);
    }
}
