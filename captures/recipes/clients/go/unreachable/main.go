// Sarama, whose broker advertises what it cannot reach. It tries for so long and gives up.
//
// Usage: unreachable sarama|sarama-group BOOTSTRAP TOPIC SECONDS
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

var bootstrap, topic = os.Args[2], os.Args[3]

// idle reads nothing.
type idle struct{}

func (idle) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (idle) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (idle) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	<-session.Context().Done()
	return nil
}

func config(clientID string) *sarama.Config {
	made := sarama.NewConfig()
	made.ClientID = clientID
	made.Producer.Return.Successes = true
	made.Net.DialTimeout = 3 * time.Second
	return made
}

func producer(ctx context.Context) {
	crane, err := sarama.NewSyncProducer([]string{bootstrap}, config("crane"))
	for ctx.Err() == nil && err == nil {
		_, _, failed := crane.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("value")})
		fmt.Println(failed)
	}
}

func group(ctx context.Context) {
	for ctx.Err() == nil {
		yard, err := sarama.NewConsumerGroup([]string{bootstrap}, "yards", config("yard"))
		if err == nil {
			err = yard.Consume(ctx, []string{topic}, idle{})
			yard.Close()
		}
		fmt.Println(err)
		time.Sleep(time.Second)
	}
}

func main() {
	seconds, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	go map[string]func(context.Context){"sarama": producer, "sarama-group": group}[os.Args[1]](ctx)
	<-ctx.Done()
}
