// A proxy that speaks TLS to clients, resumes their sessions, logs its keys, and passes on in the clear what they say.
//
// Usage: tlsproxy LISTEN CERTIFICATE_AND_KEY TO KEYLOG
package main

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"os"
)

func main() {
	certificate, err := tls.LoadX509KeyPair(os.Args[2], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	keys, err := os.OpenFile(os.Args[4], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, KeyLogWriter: keys}
	listener, err := tls.Listen("tcp", os.Args[1], config)
	if err != nil {
		log.Fatal(err)
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go pass(client)
	}
}

func pass(client net.Conn) {
	defer client.Close()
	broker, err := net.Dial("tcp", os.Args[3])
	if err != nil {
		log.Print(err)
		return
	}
	defer broker.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, broker}, {broker, client}} {
		go func() {
			_, _ = io.Copy(way[1], way[0])
			done <- struct{}{}
		}()
	}
	<-done
}
