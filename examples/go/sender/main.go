// A sender of text messages: callers submit messages at any rate, and a worker sends 20 a second,
// in their order.
//
//	go run ./sender
//
// Of 40 messages at once one may leave and 25 wait. The other 14 are refused at once, and their
// caller may try later.
package main

import (
	"context"
	"fmt"
	"log"

	tollbar "github.com/tollbar/tollbar/bindings/go"
)

func main() {
	outbox, err := tollbar.NewQueue[string]("20/s algo pacer", 25)
	if err != nil {
		log.Fatal(err)
	}
	refused := 0
	for n := range 40 {
		if _, err := outbox.Offer(fmt.Sprint("message ", n)); err != nil {
			refused++
		}
	}
	fmt.Println(refused, "refused")
	outbox.Close()
	for message := range outbox.Items(context.Background()) {
		fmt.Println(message, "leaves")
	}
}
