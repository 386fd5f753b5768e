// Sarama: a batch per codec, a consumer group, a look at the cluster.
//
// Usage: sarama BOOTSTRAP TOPIC [VERSION]
//
// With VERSION it speaks as to a broker of that release, and does what could be done with one.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
)

const each = 5

var codecs = []sarama.CompressionCodec{
	sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD,
}

var version = sarama.MaxVersion

func config(clientID string) *sarama.Config {
	made := sarama.NewConfig()
	made.ClientID = clientID
	made.Version = version
	made.ApiVersionsRequest = version.IsAtLeast(sarama.V0_10_0_0)
	made.Producer.Return.Successes = true
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.MaxWaitTime = 200 * time.Millisecond
	return made
}

// reader ends the session when it has seen as many messages as were written.
type reader struct {
	stop context.CancelFunc
	left int
}

func (r *reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (r *reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (r *reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "seen")
		if r.left--; r.left == 0 {
			session.Commit()
			r.stop()
		}
	}
	return nil
}

// readPartition is how one read before there were groups.
func readPartition(brokers []string, topic string, left int) {
	consumer, err := sarama.NewConsumer(brokers, config("yard"))
	if err != nil {
		log.Fatal(err)
	}
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		log.Fatal(err)
	}
	for ; left > 0; left-- {
		<-partition.Messages()
	}
	if err := partition.Close(); err != nil {
		log.Fatal(err)
	}
	if err := consumer.Close(); err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	brokers, topic := os.Args[1:2], os.Args[2]
	if len(os.Args) > 3 {
		asked, err := sarama.ParseKafkaVersion(os.Args[3])
		if err != nil {
			log.Fatal(err)
		}
		version = asked
	}
	if !version.IsAtLeast(sarama.V0_10_0_0) {
		codecs = codecs[:3]
	} else if !version.IsAtLeast(sarama.V2_1_0_0) {
		codecs = codecs[:4]
	}
	for _, codec := range codecs {
		settings := config(codec.String())
		settings.Producer.Compression = codec
		producer, err := sarama.NewSyncProducer(brokers, settings)
		if err != nil {
			log.Fatal(err)
		}
		batch := make([]*sarama.ProducerMessage, each)
		for i := range batch {
			batch[i] = &sarama.ProducerMessage{
				Topic: topic, Key: sarama.StringEncoder(fmt.Sprintf("crane-%d", i)),
				Value: sarama.StringEncoder(fmt.Sprintf(`{"crane": %d, "load_kg": %d}`, i, 1200*i)),
			}
		}
		if err := producer.SendMessages(batch); err != nil {
			log.Fatal(err)
		}
		if err := producer.Close(); err != nil {
			log.Fatal(err)
		}
	}

	if !version.IsAtLeast(sarama.V0_10_2_0) {
		readPartition(brokers, topic, each*len(codecs))
		return
	}
	group, err := sarama.NewConsumerGroup(brokers, "yard", config("yard"))
	if err != nil {
		log.Fatal(err)
	}
	if err := group.Consume(ctx, []string{topic}, &reader{stop, each * len(codecs)}); err != nil {
		log.Fatal(err)
	}
	if err := group.Close(); err != nil {
		log.Fatal(err)
	}

	admin, err := sarama.NewClusterAdmin(brokers, config("foreman"))
	if err != nil {
		log.Fatal(err)
	}
	groups, err := admin.ListConsumerGroups()
	fmt.Println(len(groups), err)
	entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
	fmt.Println(len(entries), err)
	fmt.Println(admin.DeleteTopic("no-such-topic"))
	if err := admin.Close(); err != nil {
		log.Fatal(err)
	}
}
