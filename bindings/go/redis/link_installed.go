//go:build tollbar_installed && !tollbar_purego

package redis

// The libraries that `make install` has installed, found by pkg-config.

// #cgo pkg-config: tollbar-redis
// #cgo CFLAGS: -DTOLLBAR_GO_INSTALLED
import "C"
