// franz-go: a batch per codec, a transaction, a cooperative group, and a topic that is not there.
//
// Usage: franz BOOTSTRAP TOPIC [VERSION]
//
// With VERSION it speaks as to a broker of that release, and does what could be done with one.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

const each = 6

// speaking is what every client is told of the release.
var speaking []kgo.Opt

func client(options ...kgo.Opt) *kgo.Client {
	options = append(options, kgo.SeedBrokers(os.Args[1]))
	made, err := kgo.NewClient(append(options, speaking...)...)
	if err != nil {
		log.Fatal(err)
	}
	return made
}

func records(topic, what string) []*kgo.Record {
	made := make([]*kgo.Record, each)
	for i := range made {
		made[i] = &kgo.Record{
			Topic:   topic,
			Key:     fmt.Appendf(nil, "ferry-%d", i),
			Value:   fmt.Appendf(nil, `{"ferry": %d, "pier": %q}`, i, what),
			Headers: []kgo.RecordHeader{{Key: "harbour", Value: []byte("north")}},
		}
	}
	return made
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	topic := os.Args[2]
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	names := []string{"none", "gzip", "snappy", "lz4", "zstd"}
	transactions := true
	if len(os.Args) > 3 {
		version := kversion.FromString(os.Args[3])
		speaking = []kgo.Opt{kgo.MaxVersions(version)}
		if produce, _ := version.LookupMaxKeyVersion(0); produce < 7 {
			names = names[:4]
		}
		if transactions = version.HasKey(22); !transactions {
			speaking = append(speaking, kgo.DisableIdempotentWrite())
		}
	}
	for _, name := range names {
		producer := client(
			kgo.ClientID(name), kgo.ProducerBatchCompression(codecs[name]), kgo.ProducerLinger(50*time.Millisecond))
		if err := producer.ProduceSync(ctx, records(topic, name)...).FirstErr(); err != nil {
			log.Fatal(err)
		}
		producer.Close()
	}

	written := each * len(names)
	if transactions {
		sell(ctx, topic)
		written += each
	}

	board := client(
		kgo.ClientID("board"), kgo.ConsumerGroup("board"), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	for seen := 0; seen < written; {
		seen += board.PollFetches(ctx).NumRecords()
	}
	if err := board.CommitUncommittedOffsets(ctx); err != nil {
		log.Fatal(err)
	}
	lags, err := kadm.NewClient(board).Lag(ctx, "board")
	fmt.Println(len(lags), err)
	details, err := kadm.NewClient(board).ListTopics(ctx, "no-such-topic")
	fmt.Println(details.Error(), err)
	board.Close()
}

// sell writes in a transaction that commits and in one that aborts.
func sell(ctx context.Context, topic string) {
	clerk := client(kgo.ClientID("clerk"), kgo.TransactionalID("clerk-1"))
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		if err := clerk.BeginTransaction(); err != nil {
			log.Fatal(err)
		}
		if err := clerk.ProduceSync(ctx, records(topic, "ticket office")...).FirstErr(); err != nil {
			log.Fatal(err)
		}
		if err := clerk.EndTransaction(ctx, end); err != nil {
			log.Fatal(err)
		}
	}
	clerk.Close()
}
