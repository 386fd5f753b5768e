import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HexFormat;

import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.telemetry.internals.ClientTelemetryUtils;
import org.apache.kafka.shaded.io.opentelemetry.proto.common.v1.AnyValue;
import org.apache.kafka.shaded.io.opentelemetry.proto.common.v1.KeyValue;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.AggregationTemporality;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Gauge;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Metric;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.NumberDataPoint;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ResourceMetrics;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ScopeMetrics;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Sum;

/** Metrics as a client pushes them, with each kind of compression, in lines like those of Embedded. */
public final class Telemetry {
    public static void main(String[] args) throws IOException {
        KeyValue node = KeyValue.newBuilder().setKey("node_id")
            .setValue(AnyValue.newBuilder().setStringValue("node-1")).build();
        Metric sum = Metric.newBuilder().setName("org.apache.kafka.producer.outgoing.byte.total").setSum(Sum.newBuilder()
            .setAggregationTemporality(AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA).setIsMonotonic(true)
            .addDataPoints(NumberDataPoint.newBuilder().setStartTimeUnixNano(1_700_000_000_000_000_000L)
                .setTimeUnixNano(1_700_000_001_500_000_000L).setAsInt(-7).addAttributes(node))).build();
        Metric gauge = Metric.newBuilder().setName("latency").setUnit("ms").setGauge(Gauge.newBuilder()
            .addDataPoints(NumberDataPoint.newBuilder().setTimeUnixNano(1).setAsDouble(Double.NaN))
            .addDataPoints(NumberDataPoint.newBuilder().setTimeUnixNano(2).setAsDouble(0.25))).build();
        MetricsData data = MetricsData.newBuilder().addResourceMetrics(ResourceMetrics.newBuilder()
            .addScopeMetrics(ScopeMetrics.newBuilder().addMetrics(sum).addMetrics(gauge))).build();
        for (CompressionType type : CompressionType.values()) {
            ByteBuffer buffer = ClientTelemetryUtils.compress(data, type);
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            System.out.println("telemetry-" + type.id + " - " + HexFormat.of().formatHex(bytes));
        }
    }
}
