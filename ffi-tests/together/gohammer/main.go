// The same program as hammer.c, in Go.
package main

import (
	"log"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	tollbar "github.com/tollbar/tollbar/bindings/go"
)

const ready, begin, stop, first, each, keys = 0, 1, 2, 8, 3, 4

func main() {
	file, err := os.OpenFile(os.Args[2], os.O_RDWR, 0)
	check(err)
	mapped, err := syscall.Mmap(int(file.Fd()), 0, 8*(first+each*keys), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check(err)
	board := unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(mapped))), first+each*keys)

	table, err := tollbar.OpenTable(os.Args[1], tollbar.TableOptions{Capacity: 1000}, os.Args[3])
	check(err)
	board[ready].Store(1)
	for board[begin].Load() == 0 {
		time.Sleep(100 * time.Microsecond)
	}
	for k := 0; board[stop].Load() == 0; k = (k + 1) % keys {
		counts := board[first+each*k:]
		counts[0].Add(1)
		if table.Allow("key-" + strconv.Itoa(k)) {
			counts[1].Add(1)
		} else {
			counts[2].Add(1)
		}
	}
	check(table.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
