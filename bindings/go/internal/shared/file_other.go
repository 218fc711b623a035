//go:build !linux || (!amd64 && !arm64)

package shared

import "github.com/tollbar/tollbar/bindings/go/internal/core"

type named struct{ inode uint64 }

func (*named) is(*named) bool { return false }

func (*named) exclusively(func()) *Error { return failed(errLock) }

var errNoFiles = needs("a table in a file, on another system than Linux on amd64 or arm64,")

func openFile(string, Access, func([]byte) (uint64, core.Code)) (region, *Error) {
	return region{}, errNoFiles
}

func openOrCreate(string, uint64, Access, func([]byte) (uint64, core.Code), func(*region) *Error) (region, *Error) {
	return region{}, errNoFiles
}

func bootID() ([2]uint64, bool) { return [2]uint64{}, false }
