package main

import (
	"encoding/binary"
	"io"
	"log"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A conn asks one request at a time, in the version it is told.
type conn struct {
	net.Conn
	format      *kmsg.RequestFormatter
	correlation int32
	versions    map[int16][2]int16
	topicID     [16]byte
}

// dial connects, authenticates by PLAIN when there is a user, and learns what the broker offers. SaslAuthenticate is of
// the version given.
func dial(address, user, password string, authenticate int16) *conn {
	plain, err := net.Dial("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	c := &conn{Conn: plain, format: kmsg.NewRequestFormatter(kmsg.FormatterClientID("timekeeper")), versions: map[int16][2]int16{}}
	if user != "" {
		handshake := kmsg.NewPtrSASLHandshakeRequest()
		handshake.Mechanism = "PLAIN"
		c.ask(handshake, 1)
		proof := kmsg.NewPtrSASLAuthenticateRequest()
		proof.SASLAuthBytes = []byte("\x00" + user + "\x00" + password)
		c.ask(proof, authenticate)
	}
	for _, one := range c.ask(greeting(), 3).(*kmsg.ApiVersionsResponse).ApiKeys {
		c.versions[one.ApiKey] = [2]int16{one.MinVersion, one.MaxVersion}
	}
	if c.versions[1][0] >= 4 {
		c.versions[0] = [2]int16{3, c.versions[0][1]} // since 4.0 it offers more than it takes, for old librdkafka's sake
	}
	return c
}

func greeting() kmsg.Request {
	request := kmsg.NewPtrApiVersionsRequest()
	request.ClientSoftwareName, request.ClientSoftwareVersion, request.NodeID = "franz-go", "1.22.2", 1
	return request
}

func (c *conn) has(key, version int16) bool {
	offered, known := c.versions[key]
	return known && offered[0] <= version && version <= offered[1]
}

// ask sends a request and returns its response.
func (c *conn) ask(request kmsg.Request, version int16) kmsg.Response {
	request.SetVersion(version)
	c.correlation++
	if _, err := c.Write(c.format.AppendRequest(nil, request, c.correlation)); err != nil {
		log.Fatal(err)
	}
	if produce, is := request.(*kmsg.ProduceRequest); is && produce.Acks == 0 {
		return nil
	}
	length := make([]byte, 4)
	if _, err := io.ReadFull(c, length); err != nil {
		log.Fatalf("%s v%d: %v", kmsg.NameForKey(request.Key()), version, err)
	}
	frame := make([]byte, binary.BigEndian.Uint32(length))
	if _, err := io.ReadFull(c, frame); err != nil {
		log.Fatalf("%s v%d: %v", kmsg.NameForKey(request.Key()), version, err)
	}
	response := request.ResponseKind()
	body := frame[4:]
	if response.IsFlexible() && request.Key() != 18 {
		body = body[1:] // no broker puts a tag into a response header
	}
	if err := response.ReadFrom(body); err != nil {
		log.Printf("%s v%d: %v", kmsg.NameForKey(request.Key()), version, err)
	}
	return response
}
