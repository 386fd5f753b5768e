// Sarama: a batch per codec, a consumer group, a look at the cluster.
//
// Usage: sarama BOOTSTRAP TOPIC
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

func config(clientID string) *sarama.Config {
	made := sarama.NewConfig()
	made.ClientID = clientID
	made.Version = sarama.MaxVersion
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

func main() {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	brokers, topic := os.Args[1:2], os.Args[2]
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
