//go:build !cgo

package rules

// This package needs cgo. Package tollbar, which it imports, stops such a build with a message.
import _ "github.com/tollbar/tollbar/bindings/go"
