//go:build tollbar_purego

package tollbar_test

// These tests run in the module tollpurego: go test -tags tollbar_purego github.com/tollbar/tollbar/bindings/go.
import _ "github.com/tollbar/tollbar/bindings/go/tollpurego"
