// A holder in Go: see holder.h.
package main

import (
	"fmt"
	"log"
	"os"
	"syscall"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
)

const limit, tries = 4, 20

func main() {
	place := os.Args[1]
	table, err := tollbar.OpenInFlight(place+"/table", tollbar.InFlightOptions{})
	check(err)
	files := make([]int, limit)
	for n := range files {
		files[n], err = syscall.Open(fmt.Sprintf("%s/lock-%d", place, n), syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
		check(err)
	}
	told := false
	for {
		if _, err := os.Stat(place + "/stop"); err == nil {
			break
		}
		ticket, ok, err := table.Acquire("k", limit)
		check(err)
		if !ok {
			time.Sleep(100 * time.Microsecond)
			continue
		}
		file := lockOne(files)
		if !told {
			told = true
			fmt.Println("held")
		}
		time.Sleep(500 * time.Microsecond)
		check(syscall.Flock(file, syscall.LOCK_UN))
		if !ticket.Release() {
			os.Exit(4)
		}
	}
	check(table.Close())
}

func lockOne(files []int) int {
	for n := 0; n < tries; n++ {
		for _, file := range files {
			if syscall.Flock(file, syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				return file
			}
		}
	}
	os.Exit(3)
	return 0
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
