// The same program as visit.c, in Go.
package main

import (
	"fmt"
	"os"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

func main() {
	table, err := tollbar.OpenTable(os.Args[1], tollbar.TableOptions{Capacity: 10_000}, "1/day")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer table.Close()
	for _, address := range os.Args[2:] {
		key := tollhttp.AddressKey(address)
		if key == "" {
			fmt.Println("no address")
			continue
		}
		if table.Allow(key) {
			fmt.Println("passes")
		} else {
			fmt.Println("refused")
		}
	}
}
