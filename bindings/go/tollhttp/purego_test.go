//go:build tollbar_purego

package tollhttp_test

// These tests run in that module, as those of package tollbar.
import _ "github.com/tollbar/tollbar/bindings/go/tollpurego"
