// franz-go over TLS, first in version 1.2, then in 1.3, with a key log. Its connections share a cache of sessions.
//
// Usage: franztls BOOTSTRAP TOPIC KEYLOG [1.3]
//
// With 1.3 there is only that: the key log has no lines for resumed sessions of TLS 1.2.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	keys, err := os.OpenFile(os.Args[3], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	defer keys.Close()
	versions := []uint16{tls.VersionTLS12, tls.VersionTLS13}
	for _, version := range versions[len(os.Args)-4:] {
		config := &tls.Config{
			InsecureSkipVerify: true,
			MinVersion:         version,
			MaxVersion:         version,
			KeyLogWriter:       keys,
			ClientSessionCache: tls.NewLRUClientSessionCache(8),
		}
		for round := range 2 {
			client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.ClientID("vault"),
				kgo.DialTLSConfig(config), kgo.AllowAutoTopicCreation())
			if err != nil {
				log.Fatal(err)
			}
			record := &kgo.Record{Topic: os.Args[2], Value: fmt.Appendf(nil, "gold bar %d", round)}
			if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
				log.Fatal(err)
			}
			client.Close()
		}
	}
}
