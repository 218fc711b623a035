// Package tollpurego lets a program without cgo load libtollbar when it runs. Import it for its
// effect, and build with -tags tollbar_purego:
//
//	import _ "github.com/tollbar/tollbar/bindings/go/tollpurego"
//
// The package tollbar then calls the library as it does with cgo. It loads libtollbar.so.1 from
// where the system finds libraries, or the file that TOLLBAR_LIBRARY in the environment names. Such
// a program is linked with the system's dynamic linker. Without the tag this package does nothing.
package tollpurego
