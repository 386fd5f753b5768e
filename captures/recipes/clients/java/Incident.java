import java.lang.reflect.InvocationTargetException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Things that go wrong, one a run. A line of output that begins with "fact:" is what really happened.
 *
 * Usage: Incident BOOTSTRAP WHAT [SETTING=VALUE...]
 */
public class Incident {
    static final Map<String, String> SETTINGS = new HashMap<>();

    public static void main(String[] args) throws Exception {
        SETTINGS.put("bootstrap.servers", args[0]);
        for (String setting : List.of(args).subList(2, args.length)) {
            SETTINGS.put(setting.split("=", 2)[0], setting.split("=", 2)[1]);
        }
        try {
            Incident.class.getDeclaredMethod(args[1].replace('-', '_')).invoke(null);
        } catch (InvocationTargetException failed) {
            System.out.println(failed.getCause());
        }
        System.exit(0);  // what cannot reach its broker would try for long to close in order
    }

    static Map<String, Object> settings(String clientId, String... more) {
        Map<String, Object> settings = new HashMap<>(SETTINGS);
        settings.put("client.id", clientId);
        settings.put("enable.metrics.push", "false");
        for (String one : more) {
            settings.put(one.split("=", 2)[0], one.split("=", 2)[1]);
        }
        return settings;
    }

    static KafkaProducer<String, String> producer(String clientId, String... more) {
        return new KafkaProducer<>(settings(clientId, more), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(String clientId, String... more) {
        Map<String, Object> settings = settings(clientId, more);
        settings.putIfAbsent("auto.offset.reset", "earliest");
        settings.putIfAbsent("fetch.max.wait.ms", "400");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static Thread run(Step step) {
        Thread thread = new Thread(() -> {
            try {
                step.run();
            } catch (Exception failed) {
                System.out.println(failed);
            }
        });
        thread.start();
        return thread;
    }

    interface Step {
        void run() throws Exception;
    }

    static void fact(String text) {
        System.out.println("fact: " + text);
    }

    /** A record every so often, for so long; what fails is counted. */
    static void produce(KafkaProducer<String, String> producer, String topic, int times, int everyMs) throws Exception {
        int failed = 0;
        for (int i = 0; i < times; i++) {
            try {
                producer.send(new ProducerRecord<>(topic, i % 2, "key-" + i, "value " + i)).get();
            } catch (ExecutionException | KafkaException refused) {
                failed++;
            }
            Thread.sleep(everyMs);
        }
        System.out.println(failed + " of " + times + " records were not written");
    }

    /** Poll until the time is over. */
    static void poll(KafkaConsumer<String, String> consumer, long forMs) throws InterruptedException {
        long end = System.currentTimeMillis() + forMs;
        while (System.currentTimeMillis() < end) {
            try {
                consumer.poll(Duration.ofMillis(100));
            } catch (KafkaException failed) {
                System.out.println(failed);
                Thread.sleep(500);  // it would be asked again at once
            }
        }
    }

    // -- topics ------------------------------------------------------------------------------------------------

    /** A topic is deleted while one client writes to it and another reads it. */
    static void topic_deleted() throws Exception {
        try (Admin admin = Admin.create(settings("cleanup-job"));
             var producer = producer("billing", "max.block.ms=1500", "delivery.timeout.ms=3000", "request.timeout.ms=1500", "linger.ms=0");
             var consumer = consumer("report", "group.id=reports")) {
            Thread writing = run(() -> produce(producer, "orders", 35, 100));
            Thread reading = run(() -> {
                consumer.subscribe(List.of("orders"));
                poll(consumer, 11000);
            });
            Thread.sleep(3000);
            admin.deleteTopics(List.of("orders")).all().get();
            fact("cleanup-job deleted orders while billing wrote to it and report read it");
            reading.join();
            writing.join();
        }
    }

    /** Nine records in ten have one key. */
    static void hot_partition() throws Exception {
        try (var producer = producer("tracker", "linger.ms=5", "batch.size=1000")) {
            for (int i = 0; i < 1500; i++) {
                String key = i % 10 == 0 ? "tenant-" + i : "tenant-1";
                producer.send(new ProducerRecord<>("clicks", key, "x".repeat(40)));
                if (i % 10 == 0) {
                    Thread.sleep(10);
                }
            }
            producer.flush();
        }
        fact("nine in ten records that tracker writes to clicks have the key tenant-1");
    }

    /** A record larger than the topic takes, again and again. */
    static void too_large() throws Exception {
        try (var producer = producer("uploader")) {
            produce(producer, "small", 3, 50);
            for (int i = 0; i < 5; i++) {
                try {
                    producer.send(new ProducerRecord<>("small", 0, "picture", "x".repeat(20000))).get();
                } catch (ExecutionException refused) {
                    System.out.println(refused.getMessage());
                }
            }
        }
        fact("uploader writes records of 20,000 bytes to small, which takes 2,000");
    }

    /** A request larger than the broker reads. */
    static void request_too_large() throws Exception {
        try (var producer = producer("uploader", "delivery.timeout.ms=5000", "request.timeout.ms=3000", "linger.ms=0", "max.request.size=2000000")) {
            try {
                producer.send(new ProducerRecord<>("pictures", 0, "picture", "x".repeat(60000))).get();
            } catch (ExecutionException refused) {
                System.out.println(refused.getMessage());
            }
        }
        fact("uploader sends a Produce of 60,000 bytes, socket.request.max.bytes is 50,000");
    }

    // -- groups ------------------------------------------------------------------------------------------------

    /** One member stays, one comes and goes, one does not poll in time, one is cut off without a word. */
    static void group_churn() throws Exception {
        String protocol = SETTINGS.getOrDefault("group.protocol", "classic");
        String[] quick = protocol.equals("classic")
            ? new String[] {"group.id=packers", "session.timeout.ms=3000", "heartbeat.interval.ms=500"}
            : new String[] {"group.id=packers"};
        Thread steady = run(() -> {
            try (var consumer = consumer("packer-steady", quick)) {
                consumer.subscribe(List.of("parcels"));
                poll(consumer, 24000);
            }
        });
        Thread restless = run(() -> {
            for (int i = 0; i < 4; i++) {
                Thread.sleep(1500);
                try (var consumer = consumer("packer-restless", quick)) {
                    consumer.subscribe(List.of("parcels"));
                    poll(consumer, 2000);
                }
            }
        });
        String[] slow = java.util.Arrays.copyOf(quick, quick.length + 1);
        slow[quick.length] = "max.poll.interval.ms=4000";
        Thread lazy = run(() -> {
            try (var consumer = consumer("packer-lazy", slow)) {
                consumer.subscribe(List.of("parcels"));
                poll(consumer, 2500);
                Thread.sleep(6000);
                poll(consumer, 3000);
                Thread.sleep(6000);
                poll(consumer, 2000);
            }
        });
        Process crashed = spawn("packer-crashed", "group.protocol=" + protocol);
        Thread.sleep(11000);
        crashed.destroyForcibly();
        fact("packer-restless came and went 4 times, packer-lazy did not poll for 6 s twice (max.poll.interval.ms 4000), "
            + "packer-crashed was killed");
        for (Thread thread : List.of(steady, restless, lazy)) {
            thread.join();
        }
    }

    static String source() {
        return System.getProperty("recipe.source");
    }

    /** A member in a process of its own. */
    static Process spawn(String clientId, String... more) throws Exception {
        List<String> command = new java.util.ArrayList<>(List.of(ProcessHandle.current().info().command().get(), "-cp",
            System.getProperty("java.class.path"), "-Xmx200m", System.getProperty("jdk.launcher.sourcefile", source()),
            SETTINGS.get("bootstrap.servers"), "member", "member=" + clientId));
        command.addAll(List.of(more));
        return new ProcessBuilder(command).inheritIO().start();
    }

    /** A member until it is killed. */
    static void member() throws InterruptedException {
        boolean classic = SETTINGS.getOrDefault("group.protocol", "classic").equals("classic");
        String clientId = SETTINGS.remove("member");
        try (var consumer = classic
                ? consumer(clientId, "group.id=packers", "session.timeout.ms=3000", "heartbeat.interval.ms=500")
                : consumer(clientId, "group.id=packers")) {
            consumer.subscribe(List.of("parcels"));
            poll(consumer, 60000);
        }
    }

    /** One member stays, one comes and goes. */
    static void share_churn() throws Exception {
        Thread steady = run(() -> worker("worker-steady", 14000));
        for (int i = 0; i < 5; i++) {
            Thread.sleep(500);
            worker("worker-restless", 1500);
        }
        fact("worker-restless came and went 5 times");
        steady.join();
    }

    static void worker(String clientId, long forMs) {
        Map<String, Object> settings = settings(clientId, "group.id=workers", "fetch.max.wait.ms=400");
        try (var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("parcels"));
            long end = System.currentTimeMillis() + forMs;
            while (System.currentTimeMillis() < end) {
                consumer.poll(Duration.ofMillis(100));
            }
        }
    }

    /** A share consumer needs longer for what it acquires than the lock on it lasts. */
    static void share_late() throws Exception {
        Thread producing = run(() -> {
            try (var producer = producer("dispatch", "linger.ms=0")) {
                produce(producer, "parcels", 60, 200);
            }
        });
        int[] done = new int[2];
        worker("worker-slow", 14000, record -> {
            Thread.sleep(700);
            done[0]++;
            return AcknowledgeType.ACCEPT;
        }, done);
        producing.join();
        fact("worker-slow takes 700 ms for each record and acknowledges all of a batch together, which is longer than "
            + "the lock lasts: it handled " + done[0] + " records, " + done[1] + " commits failed");
    }

    /** A record that every share consumer releases, until it is not delivered any more, and one that is rejected. */
    static void share_poison() throws Exception {
        Thread producing = run(() -> {
            try (var producer = producer("dispatch", "linger.ms=0")) {
                produce(producer, "parcels", 60, 100);
            }
        });
        int[] done = new int[2];
        worker("worker-strict", 9000, record -> {
            int number = Integer.parseInt(record.key().substring(4));
            if (number % 10 == 3) {
                done[0]++;
                return AcknowledgeType.RELEASE;
            }
            return number % 10 == 7 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT;
        }, done);
        producing.join();
        fact("worker-strict cannot handle one record in ten: it releases them, " + done[0] + " times in all, until they "
            + "are not delivered any more; one in ten it rejects");
    }

    interface Work {
        AcknowledgeType of(ConsumerRecord<String, String> record) throws Exception;
    }

    /** Acknowledges each record by what is made of it; counts the commits that failed in done[1]. */
    static void worker(String clientId, long forMs, Work work, int[] done) throws Exception {
        Map<String, Object> settings = settings(clientId, "group.id=workers", "fetch.max.wait.ms=400",
            "share.acknowledgement.mode=explicit", "max.poll.records=10");
        try (var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("parcels"));
            long end = System.currentTimeMillis() + forMs;
            while (System.currentTimeMillis() < end) {
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    consumer.acknowledge(record, work.of(record));
                }
                for (var failed : consumer.commitSync().values()) {
                    if (failed.isPresent()) {
                        done[1]++;
                        System.out.println(failed.get());
                    }
                }
            }
        }
    }

    /** Two consumers with one group.instance.id throw each other out. */
    static void same_instance() throws Exception {
        Step member = () -> {
            String name = Thread.currentThread().getName();
            for (int i = 0; i < 3; i++) {
                try (var consumer = consumer(name, "group.id=packers", "group.instance.id=packer-1",
                        "heartbeat.interval.ms=500", "session.timeout.ms=6000")) {
                    consumer.subscribe(List.of("parcels"));
                    for (int n = 0; n < 30; n++) {
                        consumer.poll(Duration.ofMillis(100));
                    }
                } catch (KafkaException fenced) {
                    System.out.println(name + ": " + fenced);
                }
            }
        };
        Thread one = run(() -> { Thread.currentThread().setName("pod-a"); member.run(); });
        Thread.sleep(1500);
        Thread two = run(() -> { Thread.currentThread().setName("pod-b"); member.run(); });
        one.join();
        two.join();
        fact("pod-a and pod-b are both group.instance.id packer-1");
    }

    // -- transactions ------------------------------------------------------------------------------------------

    /** A transaction is left open, and a reader of what is committed waits behind it until it times out. */
    static void transaction_left_open() throws Exception {
        var left = producer("payments-left", "transactional.id=payments-left", "transaction.timeout.ms=4000");
        left.initTransactions();
        left.beginTransaction();
        left.send(new ProducerRecord<>("parcels", 0, "lost", "value")).get();
        try (var producer = producer("payments", "transactional.id=payments", "transaction.timeout.ms=60000")) {
            producer.initTransactions();
            for (int i = 0; i < 6; i++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>("parcels", 0, "key-" + i, "value")).get();
                if (i % 3 == 2) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        try (var consumer = consumer("ledger", "group.id=ledgers", "isolation.level=read_committed")) {
            consumer.assign(List.of(new TopicPartition("parcels", 0)));
            int seen = 0;
            for (int i = 0; i < 150 && seen < 4; i++) {
                seen += consumer.poll(Duration.ofMillis(100)).count();
            }
            System.out.println("seen " + seen);
        }
        try {
            left.commitTransaction();
        } catch (KafkaException refused) {
            System.out.println(refused);
        }
        fact("payments-left left its transaction open, the coordinator aborted it after transaction.timeout.ms (4 s); "
            + "payments committed 4 and aborted 2");
    }

    /** The same transactional id in two producers. */
    static void fenced() throws Exception {
        var old = producer("payments-old", "transactional.id=payments-tx");
        old.initTransactions();
        old.beginTransaction();
        old.send(new ProducerRecord<>("parcels", 0, "one", "value")).get();
        try (var young = producer("payments-new", "transactional.id=payments-tx")) {
            young.initTransactions();
            young.beginTransaction();
            young.send(new ProducerRecord<>("parcels", 1, "two", "value")).get();
            young.commitTransaction();
        }
        try {
            old.send(new ProducerRecord<>("parcels", 0, "three", "value")).get();
            old.commitTransaction();
        } catch (ExecutionException | KafkaException refused) {
            System.out.println(refused);
        }
        fact("payments-new fenced payments-old; the transaction of payments-old was aborted, that of payments-new committed");
    }

    // -- connections -------------------------------------------------------------------------------------------

    /** Write a few records, as far as that goes. */
    static void write() throws Exception {
        try (var producer = producer("billing", "max.block.ms=4000", "delivery.timeout.ms=5000", "request.timeout.ms=2000", "linger.ms=0")) {
            produce(producer, "orders", 3, 200);
        }
    }

    /** Read for a while what others may have written. */
    static void read() throws Exception {
        try (var consumer = consumer("report", "group.id=reports")) {
            consumer.subscribe(List.of("orders"));
            poll(consumer, 6000);
        }
    }

    /** Ten connections, one after the other. */
    static void connect() throws Exception {
        for (int i = 0; i < 4; i++) {
            try (var producer = producer("cron-" + i)) {
                produce(producer, "orders", 1, 100);
            }
        }
    }

    /** A quota on what a user reads. */
    static void fetch_quota() throws Exception {
        try (Admin admin = Admin.create(settings("quota-admin"))) {
            var entity = new org.apache.kafka.common.quota.ClientQuotaEntity(Map.of("user", "alice"));
            var quota = new org.apache.kafka.common.quota.ClientQuotaAlteration.Op("consumer_byte_rate", 20000.0);
            admin.alterClientQuotas(List.of(
                new org.apache.kafka.common.quota.ClientQuotaAlteration(entity, List.of(quota)))).all().get();
        }
        try (var producer = producer("loader", "compression.type=none")) {
            for (int i = 0; i < 60; i++) {
                producer.send(new ProducerRecord<>("orders", i % 2, "key", "x".repeat(8000)));
            }
            producer.flush();
        }
        try (var consumer = consumer("replayer", "group.id=replays", "max.partition.fetch.bytes=40000", "fetch.max.bytes=40000")) {
            consumer.subscribe(List.of("orders"));
            poll(consumer, 15000);
        }
        fact("alice may read 20,000 bytes a second, replayer reads 480,000");
    }

    /** A record now and then, so that the broker closes what is idle. */
    static void idle() throws Exception {
        try (var producer = producer("heartbeat")) {
            produce(producer, "orders", 3, 4000);
        }
    }

    /** Records for somebody who reads them slowly. */
    static void write_much() throws Exception {
        try (var producer = producer("loader", "compression.type=none")) {
            for (int i = 0; i < 200; i++) {
                producer.send(new ProducerRecord<>("orders", 0, "key", "x".repeat(10000)));
            }
        }
    }

    // -- clusters ----------------------------------------------------------------------------------------------

    /** A producer that wants all replicas, and a group that reads along. What else happens is done to the brokers. */
    static void steady() throws Exception {
        int seconds = Integer.parseInt(SETTINGS.remove("seconds"));
        boolean reads = !"no".equals(SETTINGS.remove("reader"));
        String patience = SETTINGS.getOrDefault("delivery.timeout.ms", "60000");
        try (var producer = producer("order-svc", "acks=all", "linger.ms=0", "delivery.timeout.ms=" + patience, "request.timeout.ms=5000");
             var consumer = consumer("report", "group.id=reports", "session.timeout.ms=10000")) {
            Thread reading = run(() -> {
                if (reads) {
                    consumer.subscribe(List.of("orders"));
                    poll(consumer, 1000L * seconds);
                }
            });
            long end = System.currentTimeMillis() + 1000L * seconds;
            for (int i = 0; System.currentTimeMillis() < end; i++) {
                producer.send(new ProducerRecord<>("orders", i % 3, "key-" + i, "value " + i));
                Thread.sleep(100);
            }
            producer.flush();
            reading.join();
        }
    }

    /** Commands that ask something and are done. */
    static void looks() throws Exception {
        try (Admin admin = Admin.create(settings("groups-command"))) {
            admin.alterConsumerGroupOffsets("jobs", Map.of(new TopicPartition("orders", 0), new OffsetAndMetadata(0)))
                .all().get();
        }
        for (int i = 0; i < 5; i++) {
            try (Admin admin = Admin.create(settings("topics-command"))) {
                System.out.println(admin.describeTopics(List.of("orders")).allTopicNames().get());
            }
            try (Admin admin = Admin.create(settings("groups-command"))) {
                System.out.println(admin.describeConsumerGroups(List.of("jobs")).all().get());
            }
            try (Admin admin = Admin.create(settings("unused"))) {
                Thread.sleep(700);
            }
        }
    }

    /** A quota on what a user may write, or on the time that its requests may take. */
    static void produce_quota() throws Exception {
        quota("user", "alice", "producer_byte_rate", 8000.0);
        try (var producer = producer("loader", "compression.type=none", "linger.ms=0", "batch.size=1000")) {
            for (int i = 0; i < 60; i++) {
                producer.send(new ProducerRecord<>("orders", i % 2, "key", "x".repeat(2000)));
            }
            producer.flush();
        }
        fact("alice may write 8,000 bytes a second, loader writes 120,000");
    }

    static void request_quota() throws Exception {
        quota("client-id", "hasty", "request_percentage", 1.0);
        try (var producer = producer("hasty", "linger.ms=0", "max.in.flight.requests.per.connection=1")) {
            for (int i = 0; i < 60; i++) {
                producer.send(new ProducerRecord<>("orders", 0, "key", "value")).get();
            }
        }
        fact("the requests of hasty may take 1 % of a thread's time, and take more");
    }

    static void quota(String kind, String name, String what, double value) throws Exception {
        try (Admin admin = Admin.create(settings("quota-admin"))) {
            var entity = new org.apache.kafka.common.quota.ClientQuotaEntity(Map.of(kind, name));
            var quota = new org.apache.kafka.common.quota.ClientQuotaAlteration.Op(what, value);
            admin.alterClientQuotas(List.of(
                new org.apache.kafka.common.quota.ClientQuotaAlteration(entity, List.of(quota)))).all().get();
        }
    }

    /** What a group has not read yet is deleted, as retention does. */
    static void retention() throws Exception {
        TopicPartition partition = new TopicPartition("orders", 0);
        try (var producer = producer("billing"); Admin admin = Admin.create(settings("janitor"))) {
            produce(producer, "orders", 20, 0);
            try (var consumer = consumer("report", "group.id=reports", "max.poll.records=2")) {
                consumer.assign(List.of(partition));
                while (consumer.poll(Duration.ofMillis(200)).isEmpty()) { }
                consumer.commitSync(Map.of(partition, new org.apache.kafka.clients.consumer.OffsetAndMetadata(2)));
            }
            admin.deleteRecords(Map.of(partition, org.apache.kafka.clients.admin.RecordsToDelete.beforeOffset(7))).all().get();
            produce(producer, "orders", 10, 0);
        }
        try (var consumer = consumer("report", "group.id=reports")) {
            consumer.assign(List.of(partition));
            poll(consumer, 2000);
        }
        fact("report had read orders-0 up to 2, what lay before 7 was deleted before it read on");
    }

    /** A transaction that its producer neither commits nor aborts while readers of what is committed wait. */
    static void transaction_stuck() throws Exception {
        var stuck = producer("payments-stuck", "transactional.id=payments-stuck", "transaction.timeout.ms=600000");
        stuck.initTransactions();
        stuck.beginTransaction();
        stuck.send(new ProducerRecord<>("parcels", 0, "first", "value")).get();
        Thread reading = run(() -> {
            try (var consumer = consumer("ledger", "group.id=ledgers", "isolation.level=read_committed")) {
                consumer.assign(List.of(new TopicPartition("parcels", 0), new TopicPartition("parcels", 1)));
                poll(consumer, 25000);
            }
        });
        try (var producer = producer("payments", "transactional.id=payments", "transaction.timeout.ms=60000")) {
            producer.initTransactions();
            for (int i = 0; i < 20; i++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>("parcels", i % 2, "key-" + i, "value")).get();
                producer.commitTransaction();
                Thread.sleep(800);
            }
        }
        reading.join();
        fact("payments-stuck left its transaction on parcels-0 open (transaction.timeout.ms is 10 minutes), payments "
            + "committed 20 to parcels, ledger reads what is committed and got nothing of parcels-0");
    }

    /** One member does not come back to poll while another joins: everybody waits for it. */
    static void held_up() throws Exception {
        Thread slow = run(() -> {
            try (var consumer = consumer("packer-slow", "group.id=packers", "max.poll.interval.ms=14000")) {
                consumer.subscribe(List.of("parcels"));
                poll(consumer, 3000);
                Thread.sleep(12500);
                poll(consumer, 4000);
            }
        });
        Thread.sleep(5000);
        try (var consumer = consumer("packer-new", "group.id=packers", "max.poll.interval.ms=14000")) {
            consumer.subscribe(List.of("parcels"));
            poll(consumer, 15000);
        }
        slow.join();
        fact("packer-new joined while packer-slow worked for 12.5 s between two polls (max.poll.interval.ms 14 s): "
            + "the group stood still until it polled again");
    }

    /** Topics are asked for while nobody leads the cluster. */
    static void create_topics() throws Exception {
        try (Admin admin = Admin.create(settings("deployer", "request.timeout.ms=5000", "default.api.timeout.ms=12000"))) {
            admin.createTopics(List.of(new org.apache.kafka.clients.admin.NewTopic("invoices", 1, (short) 1))).all().get();
        } catch (ExecutionException failed) {
            System.out.println(failed.getCause());
        }
        fact("deployer creates a topic while the only controller is gone");
    }

    // -- consumers that are too slow ---------------------------------------------------------------------------

    /** A member's process stands still for longer than its session may last, and goes on then. */
    static void frozen_member() throws Exception {
        String protocol = "group.protocol=" + SETTINGS.getOrDefault("group.protocol", "classic");
        Process frozen = spawn("packer-frozen", protocol);
        String[] quick = protocol.endsWith("classic")
            ? new String[] {"group.id=packers", "session.timeout.ms=3000", "heartbeat.interval.ms=500"}
            : new String[] {"group.id=packers"};
        try (var consumer = consumer("packer-steady", quick)) {
            consumer.subscribe(List.of("parcels"));
            poll(consumer, 15000);
            for (int i = 0; i < 2; i++) {
                signal(frozen, "STOP");
                poll(consumer, 6000);
                signal(frozen, "CONT");
                poll(consumer, 4000);
            }
        }
        frozen.destroyForcibly();
        fact("the process of packer-frozen stood still for 6 s, twice, and lost its session (3 s)");
    }

    static void signal(Process process, String name) throws Exception {
        new ProcessBuilder("kill", "-" + name, String.valueOf(process.pid())).start().waitFor();
    }

    /** A consumer that takes longer for what it polls than max.poll.interval.ms, again and again. */
    static void slow_polls() throws Exception {
        try (var producer = producer("billing")) {
            produce(producer, "parcels", 40, 0);
        }
        try (var consumer = consumer("packer-slow", "group.id=packers", "max.poll.interval.ms=3000", "max.poll.records=3")) {
            consumer.subscribe(List.of("parcels"));
            long end = System.currentTimeMillis() + 32000;
            while (System.currentTimeMillis() < end) {
                int polled = 0;
                for (int i = 0; i < 20 && polled == 0; i++) {
                    polled = consumer.poll(Duration.ofMillis(200)).count();
                }
                Thread.sleep(5000);
                try {
                    consumer.commitSync();
                } catch (KafkaException refused) {
                    System.out.println(refused);
                }
            }
        }
        fact("packer-slow takes 5 s for what it polls, max.poll.interval.ms is 3 s");
    }

    /** A consumer that reads less than is written. */
    static void consumer_behind() throws Exception {
        Thread writing = run(() -> {
            try (var producer = producer("tracker", "linger.ms=0", "compression.type=none")) {
                for (int i = 0; i < 1800; i++) {
                    producer.send(new ProducerRecord<>("clicks", i % 2, "key", "x".repeat(400)));
                    Thread.sleep(15);
                }
            }
        });
        try (var consumer = consumer("report", "group.id=reports", "max.poll.records=5", "max.partition.fetch.bytes=6000",
                "fetch.max.bytes=6000", "auto.commit.interval.ms=1000")) {
            consumer.subscribe(List.of("clicks"));
            long end = System.currentTimeMillis() + 30000;
            while (System.currentTimeMillis() < end) {
                consumer.poll(Duration.ofMillis(100));
                Thread.sleep(300);
            }
        }
        writing.join();
        fact("tracker writes 60 records a second to clicks, report reads 15");
    }

    /** The log has many records, each in a batch of its own, and the consumer lets itself be given one at a time. */
    static void small_fetches() throws Exception {
        try (var consumer = consumer("report", "group.id=reports", "max.partition.fetch.bytes=100", "fetch.max.bytes=100")) {
            consumer.subscribe(List.of("clicks"));
            poll(consumer, 9000);
        }
        fact("report asks for 100 bytes at a time (fetch.max.bytes, max.partition.fetch.bytes), records have 400");
    }

    /** Records one by one, which is how they lie in the log. */
    static void write_singly() throws Exception {
        try (var producer = producer("tracker", "linger.ms=0", "batch.size=0", "compression.type=none")) {
            for (int i = 0; i < 12000; i++) {
                producer.send(new ProducerRecord<>("clicks", i % 2, "key", "x".repeat(400)));
            }
        }
    }

    /** A consumer whose requests end before the broker may answer them. */
    static void impatient() throws Exception {
        try (var consumer = consumer("report", "group.id=reports", "fetch.max.wait.ms=8000", "request.timeout.ms=2000")) {
            consumer.assign(List.of(new TopicPartition("orders", 0), new TopicPartition("orders", 1)));
            poll(consumer, 20000);
        }
        fact("report lets the broker wait for 8 s (fetch.max.wait.ms) and gives up after 2 s (request.timeout.ms)");
    }

    // -- groups that cannot be ---------------------------------------------------------------------------------

    /** Two members without a common assignor. */
    static void two_assignors() throws Exception {
        Thread one = run(() -> {
            try (var consumer = consumer("packer-old", "group.id=packers",
                    "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor")) {
                consumer.subscribe(List.of("parcels"));
                poll(consumer, 22000);
            }
        });
        Thread.sleep(8000);
        try (var consumer = consumer("packer-new", "group.id=packers",
                "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor")) {
            consumer.subscribe(List.of("parcels"));
            poll(consumer, 9000);
        }
        one.join();
        fact("packer-old has only the range assignor, packer-new only the cooperative one");
    }

    /** More members than a group may have. */
    static void group_full() throws Exception {
        Thread[] members = new Thread[3];
        for (int i = 0; i < members.length; i++) {
            String name = "packer-" + i;
            members[i] = run(() -> {
                try (var consumer = consumer(name, "group.id=packers")) {
                    consumer.subscribe(List.of("parcels"));
                    poll(consumer, 20000);
                }
            });
            Thread.sleep(5000);
        }
        for (Thread member : members) {
            member.join();
        }
        fact("the group packers may have 2 members, packer-2 is the third");
    }

    // -- records that are refused ------------------------------------------------------------------------------

    /** A clock that is a day ahead. */
    static void clock_ahead() throws Exception {
        try (var producer = producer("sensor")) {
            for (int i = 0; i < 8; i++) {
                long now = System.currentTimeMillis() + 24 * 3600 * 1000L;
                try {
                    producer.send(new ProducerRecord<>("readings", 0, now, "key", "value")).get();
                } catch (ExecutionException refused) {
                    System.out.println(refused.getMessage());
                }
                Thread.sleep(100);
            }
        }
        fact("the clock of sensor is a day ahead, readings takes what is up to a minute ahead");
    }

    /** Records without a key for a compacted topic. */
    static void no_key() throws Exception {
        try (var producer = producer("profiles-svc")) {
            for (int i = 0; i < 5; i++) {
                try {
                    producer.send(new ProducerRecord<>("profiles", 0, i == 0 ? "key" : null, "value")).get();
                } catch (ExecutionException refused) {
                    System.out.println(refused.getMessage());
                }
            }
        }
        fact("profiles-svc writes records without a key to profiles, which is compacted");
    }

    /** Records in zstd. */
    static void write_zstd() throws Exception {
        try (var producer = producer("billing", "compression.type=zstd")) {
            produce(producer, "orders", 6, 10);
        }
    }

    /** The clock of one of two producers is five minutes behind: it says itself when its records were made. */
    static void clock_behind() throws Exception {
        Thread other = run(() -> {
            try (var producer = producer("till", "linger.ms=0")) {
                produce(producer, "readings", 50, 100);
            }
        });
        try (var producer = producer("sensor", "linger.ms=0")) {
            for (int i = 0; i < 50; i++) {
                long late = System.currentTimeMillis() - 300_000;
                producer.send(new ProducerRecord<>("readings", i % 2, late, "key-" + i, "value " + i));
                Thread.sleep(100);
            }
        }
        other.join();
        fact("the clock of sensor is 300 s behind, that of till is right");
    }

    // -- transactions that end otherwise -----------------------------------------------------------------------

    /** A producer that goes on with a transaction which its coordinator has aborted. */
    static void transaction_timed_out() throws Exception {
        var slow = producer("payments-slow", "transactional.id=payments-tx", "transaction.timeout.ms=3000");
        slow.initTransactions();
        slow.beginTransaction();
        slow.send(new ProducerRecord<>("parcels", 0, "one", "value")).get();
        Thread.sleep(9000);
        try {
            slow.send(new ProducerRecord<>("parcels", 0, "two", "value")).get();
            slow.commitTransaction();
        } catch (ExecutionException | KafkaException refused) {
            System.out.println(refused);
        }
        fact("payments-slow needed 9 s for a transaction that may take 3 s (transaction.timeout.ms): its coordinator aborted it");
    }

    /** A transactional id that its user may not use. */
    static void transactional_id_denied() throws Exception {
        try (Admin admin = Admin.create(settings("acl-admin"))) {
            var pattern = new org.apache.kafka.common.resource.ResourcePattern(
                org.apache.kafka.common.resource.ResourceType.TRANSACTIONAL_ID, "payments-tx",
                org.apache.kafka.common.resource.PatternType.LITERAL);
            var entry = new org.apache.kafka.common.acl.AccessControlEntry("User:bob", "*",
                org.apache.kafka.common.acl.AclOperation.ALL, org.apache.kafka.common.acl.AclPermissionType.ALLOW);
            admin.createAcls(List.of(new org.apache.kafka.common.acl.AclBinding(pattern, entry))).all().get();
        }
        for (int i = 0; i < 3; i++) {
            try (var producer = producer("payments", "transactional.id=payments-tx", "max.block.ms=3000")) {
                producer.initTransactions();
            } catch (KafkaException refused) {
                System.out.println(refused);
            }
        }
        fact("alice may not use the transactional id payments-tx, bob may");
    }

    // -- connections that are refused --------------------------------------------------------------------------

    /** More connections than an address may have. */
    static void crowd() throws Exception {
        Thread[] workers = new Thread[6];
        for (int i = 0; i < workers.length; i++) {
            String name = "worker-" + i;
            workers[i] = run(() -> {
                try (Admin admin = Admin.create(settings(name, "request.timeout.ms=2000", "default.api.timeout.ms=6000"))) {
                    for (int n = 0; n < 4; n++) {
                        try {
                            admin.listTopics().names().get();
                        } catch (ExecutionException failed) {
                            System.out.println(name + ": " + failed.getCause());
                        }
                        Thread.sleep(1000);
                    }
                }
            });
            Thread.sleep(300);
        }
        for (Thread worker : workers) {
            worker.join();
        }
    }

    /** More connections a second than an address may make. */
    static void connection_rate() throws Exception {
        quota("ip", "10.9.0.2", "connection_creation_rate", 1.0);
        for (int i = 0; i < 25; i++) {
            try (Admin admin = Admin.create(settings("cron-" + i, "request.timeout.ms=3000", "default.api.timeout.ms=4000"))) {
                admin.listTopics().names().get();
            } catch (ExecutionException failed) {
                System.out.println(failed.getCause());
            }
        }
        fact("10.9.0.2 may make one connection a second (connection_creation_rate) and makes more");
    }

    /** A user that is removed while its session lasts. */
    static void user_removed() throws Exception {
        try (var producer = producer("billing", "max.block.ms=4000", "delivery.timeout.ms=5000", "request.timeout.ms=2000", "linger.ms=0");
             Admin admin = Admin.create(settings("user-admin"))) {
            produce(producer, "orders", 10, 200);
            admin.alterUserScramCredentials(List.of(new org.apache.kafka.clients.admin.UserScramCredentialDeletion(
                "alice", org.apache.kafka.clients.admin.ScramMechanism.SCRAM_SHA_256))).all().get();
            fact("user-admin removed the credentials of alice while the sessions of alice lasted (connections.max.reauth.ms 4 s)");
            produce(producer, "orders", 40, 200);
        }
    }

    // -- clusters that change ----------------------------------------------------------------------------------

    /** All partitions are moved to other brokers while one writes and another reads. */
    static void reassignment() throws Exception {
        Thread moving = run(() -> {
            Thread.sleep(6000);
            try (Admin admin = Admin.create(settings("ops"))) {
                Map<TopicPartition, Optional<org.apache.kafka.clients.admin.NewPartitionReassignment>> moves = new HashMap<>();
                for (int partition = 0; partition < 3; partition++) {
                    moves.put(new TopicPartition("orders", partition),
                        Optional.of(new org.apache.kafka.clients.admin.NewPartitionReassignment(List.of(3, 2))));
                }
                admin.alterPartitionReassignments(moves).all().get();
                fact("ops moved all partitions of orders to nodes 3 and 2");
                while (!admin.listPartitionReassignments().reassignments().get().isEmpty()) {
                    Thread.sleep(500);
                }
            }
        });
        SETTINGS.put("seconds", "20");
        steady();
        moving.join();
    }

    /** One writes without waiting for followers, one reads without a group. */
    static void no_followers() throws Exception {
        long end = System.currentTimeMillis() + 1000L * Integer.parseInt(SETTINGS.remove("seconds"));
        try (var producer = producer("order-svc", "acks=1", "enable.idempotence=false", "linger.ms=0", "delivery.timeout.ms=60000", "request.timeout.ms=5000");
             var consumer = consumer("report", "auto.offset.reset=none", "metadata.max.age.ms=2000")) {
            TopicPartition partition = new TopicPartition("orders", 0);
            Thread reading = run(() -> {
                consumer.assign(List.of(partition));
                consumer.seekToBeginning(List.of(partition));
                while (System.currentTimeMillis() < end) {
                    try {
                        consumer.poll(Duration.ofMillis(100));
                    } catch (org.apache.kafka.clients.consumer.OffsetOutOfRangeException truncated) {
                        System.out.println(truncated);
                        consumer.seekToEnd(List.of(partition));
                    }
                }
            });
            for (int i = 0; System.currentTimeMillis() < end; i++) {
                producer.send(new ProducerRecord<>("orders", 0, "key-" + i, "value " + i));
                Thread.sleep(100);
            }
            reading.join();
        }
    }

    /** A topic is deleted and made anew while one client writes to it and another reads it. */
    static void topic_recreated() throws Exception {
        try (Admin admin = Admin.create(settings("deployer"));
             var producer = producer("billing", "linger.ms=0");
             var consumer = consumer("report", "group.id=reports")) {
            Thread writing = run(() -> produce(producer, "orders", 120, 100));
            Thread reading = run(() -> {
                consumer.subscribe(List.of("orders"));
                poll(consumer, 13000);
            });
            Thread.sleep(5000);
            admin.deleteTopics(List.of("orders")).all().get();
            admin.createTopics(List.of(new org.apache.kafka.clients.admin.NewTopic("orders", 2, (short) 1))).all().get();
            fact("deployer deleted orders and made it anew while billing wrote to it and report read it");
            reading.join();
            writing.join();
        }
    }

    /** A service that ends at a record it cannot read, and is started again each time. */
    static void poison_record() throws Exception {
        try (var producer = producer("billing", "linger.ms=0")) {
            for (int i = 0; i < 12; i++) {
                producer.send(new ProducerRecord<>("parcels", i % 2, "key-" + i, i == 6 ? "<not JSON>" : "{\"n\":" + i + "}")).get();
            }
        }
        int starts = 6;
        for (int start = 0; start < starts; start++) {
            try (var consumer = consumer("packer", "group.id=packers", "enable.auto.commit=false")) {
                consumer.subscribe(List.of("parcels"));
                long end = System.currentTimeMillis() + 8000;
                while (System.currentTimeMillis() < end) {
                    for (var record : consumer.poll(Duration.ofMillis(200))) {
                        if (!record.value().startsWith("{")) {
                            throw new IllegalStateException("cannot read " + record.topic() + "-" + record.partition() + "@" + record.offset());
                        }
                        consumer.commitSync(Map.of(new TopicPartition(record.topic(), record.partition()),
                                new OffsetAndMetadata(record.offset() + 1)));
                    }
                }
            } catch (IllegalStateException failed) {
                System.out.println(failed);
            }
            Thread.sleep(1000);
        }
        fact("packer ended " + starts + " times at the record parcels-0@3, which it cannot read, and was started again");
    }

    /** A service that goes back to a record that it cannot process, and tries it again and again. */
    static void record_retried() throws Exception {
        try (var producer = producer("billing", "linger.ms=0")) {
            for (int i = 0; i < 40; i++) {
                producer.send(new ProducerRecord<>("parcels", i % 2, "key-" + i, "value " + i)).get();
            }
        }
        int tries = 0;
        TopicPartition partition = new TopicPartition("parcels", 1);
        try (var consumer = consumer("packer", "group.id=packers", "enable.auto.commit=false", "max.poll.records=1")) {
            consumer.subscribe(List.of("parcels"));
            long end = System.currentTimeMillis() + 15000;
            while (System.currentTimeMillis() < end) {
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    TopicPartition of = new TopicPartition(record.topic(), record.partition());
                    if (of.equals(partition) && record.offset() == 5) {
                        tries++;
                        consumer.seek(of, record.offset());
                        Thread.sleep(1000);
                    } else {
                        consumer.commitSync(Map.of(of, new OffsetAndMetadata(record.offset() + 1)));
                    }
                }
            }
        }
        fact("packer could not process the record parcels-1@5, and went back to it " + tries + " times");
    }

    /** A consumer whose application does not come back from what it does with the records; only its heartbeats go on. */
    static void stuck_consumer() throws Exception {
        Thread writing = run(() -> {
            try (var producer = producer("tracker", "linger.ms=0")) {
                for (int i = 0; i < 240; i++) {
                    producer.send(new ProducerRecord<>("clicks", i % 2, "key", "x".repeat(100)));
                    Thread.sleep(110);
                }
            }
        });
        try (var consumer = consumer("report", "group.id=reports", "auto.commit.interval.ms=1000")) {
            consumer.subscribe(List.of("clicks"));
            poll(consumer, 5000);
            Thread.sleep(20000);
            poll(consumer, 2000);
        }
        writing.join();
        fact("report waited 20 s for a database and polled nothing meanwhile, while tracker wrote 9 records a second");
    }

    /** Small records arrive, large ones do not: packets of full size are lost on the way. */
    static void narrow_path() throws Exception {
        try (var producer = producer("billing", "linger.ms=0", "compression.type=none", "request.timeout.ms=8000",
                "delivery.timeout.ms=10000", "max.in.flight.requests.per.connection=1")) {
            int failed = 0;
            for (int i = 0; i < 30; i++) {
                try {
                    producer.send(new ProducerRecord<>("orders", i % 2, "key", "x".repeat(i == 10 || i == 20 ? 20000 : 100))).get();
                } catch (ExecutionException refused) {
                    failed++;
                    System.out.println(refused);
                }
                Thread.sleep(100);
            }
            fact("packets of more than 1,400 bytes were lost on the way to the broker: " + failed + " of 30 records of billing, the large ones, were not written");
        }
    }

    /** A producer that waits for each record, and a consumer, far away from their broker. */
    static void far_away() throws Exception {
        try (var producer = producer("billing", "linger.ms=0", "acks=1", "max.in.flight.requests.per.connection=1")) {
            produce(producer, "orders", 40, 0);
        }
        try (var consumer = consumer("report", "group.id=reports")) {
            consumer.subscribe(List.of("orders"));
            poll(consumer, 6000);
        }
    }

    /** Records that the topic does not take, from a producer that does not ask what became of them. */
    static void too_large_unasked() throws Exception {
        try (var producer = producer("metrics", "acks=0", "enable.idempotence=false", "linger.ms=0", "compression.type=none")) {
            for (int i = 0; i < 60; i++) {
                producer.send(new ProducerRecord<>("small", 0, "key", "x".repeat(i % 10 == 9 ? 20000 : 100)));
                Thread.sleep(150);
            }
        }
        fact("metrics writes 6 records of 20,000 bytes with acks=0 to small, which takes 2,000: they are lost, and the broker "
            + "closes the connection each time");
    }

    /** Somebody sets the offsets of a group that is at work. */
    static void offsets_set() throws Exception {
        Thread member = run(() -> {
            try (var consumer = consumer("report", "group.id=reports", "auto.commit.interval.ms=1000")) {
                consumer.subscribe(List.of("orders"));
                poll(consumer, 10000);
            }
        });
        Thread.sleep(4000);
        try (Admin admin = Admin.create(settings("ops"))) {
            for (int i = 0; i < 3; i++) {
                try {
                    admin.alterConsumerGroupOffsets("reports", Map.of(new TopicPartition("orders", 0), new OffsetAndMetadata(0))).all().get();
                } catch (ExecutionException refused) {
                    System.out.println(refused);
                }
                Thread.sleep(1000);
            }
        }
        member.join();
        fact("ops sets the offsets of the group reports while report is a member of it: its coordinator takes none of them");
    }

    /** The right to write is taken away from a client at work. */
    static void right_removed() throws Exception {
        var pattern = new org.apache.kafka.common.resource.ResourcePattern(
            org.apache.kafka.common.resource.ResourceType.TOPIC, "orders", org.apache.kafka.common.resource.PatternType.LITERAL);
        var entry = new org.apache.kafka.common.acl.AccessControlEntry("User:ANONYMOUS", "*",
            org.apache.kafka.common.acl.AclOperation.WRITE, org.apache.kafka.common.acl.AclPermissionType.DENY);
        try (Admin admin = Admin.create(settings("acl-admin"));
             var producer = producer("billing", "linger.ms=0", "max.block.ms=3000", "delivery.timeout.ms=5000", "request.timeout.ms=3000")) {
            Thread writing = run(() -> produce(producer, "orders", 60, 100));
            Thread.sleep(3000);
            admin.createAcls(List.of(new org.apache.kafka.common.acl.AclBinding(pattern, entry))).all().get();
            writing.join();
        }
        fact("acl-admin denied ANONYMOUS to write to orders while billing wrote to it");
    }
}
