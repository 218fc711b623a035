// A sender of text messages: callers submit messages at any rate, and a worker sends 20 a second,
// in their order.
//
//	go run ./sender
//
// In Go the queue is a channel, and the worker waits for a limiter. Of 40 messages at once the
// channel keeps 26. The other 14 are refused at once, and their caller may try later.
package main

import (
	"context"
	"fmt"
	"log"

	tollbar "github.com/tollbar/tollbar/bindings/go"
)

func main() {
	pace, err := tollbar.NewLimiter("20/s algo pacer")
	if err != nil {
		log.Fatal(err)
	}
	defer pace.Close()
	outbox := make(chan string, 26)
	refused := 0
	for n := range 40 {
		select {
		case outbox <- fmt.Sprint("message ", n):
		default:
			refused++
		}
	}
	fmt.Println(refused, "refused")
	close(outbox)
	for message := range outbox {
		if err := pace.Wait(context.Background()); err != nil {
			log.Fatal(err)
		}
		fmt.Println(message, "leaves")
	}
}
