//go:build !cgo

package redis

// This package calls a C library; tollbar, which says so, does, too.
import _ "github.com/tollbar/tollbar/bindings/go"
