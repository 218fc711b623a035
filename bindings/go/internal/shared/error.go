package shared

import (
	"syscall"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// The errors of tables, with their numbers in tollbar.h.
const (
	errOutOfRange    core.Code = -5
	errNoMemory      core.Code = -40
	errCapacity      core.Code = -50
	errPolicyCount   core.Code = -51
	errNoSuchPolicy  core.Code = -52
	errMissingKey    core.Code = -56
	errUnsupported   core.Code = -57
	errNotATable     core.Code = -60
	errVersion       core.Code = -61
	errTruncated     core.Code = -62
	errCorrupt       core.Code = -63
	errOtherCapacity core.Code = -64
	errOtherPolicies core.Code = -65
	errOtherOptions  core.Code = -66
	errBootID        core.Code = -67
	errOverridesFull core.Code = -69
	errOpen          core.Code = -70
	errRead          core.Code = -71
	errNoSpace       core.Code = -72
	errMap           core.Code = -73
	errLink          core.Code = -74
	errLock          core.Code = -75
	errRandom        core.Code = -76
	errSync          core.Code = -77
	errOwner         core.Code = -78
	errVersions      core.Code = -54
	errTimeNamespace core.Code = -104
)

// Error says why a table cannot be made or opened.
type Error struct {
	Code core.Code
	// Errno is the system's error, or 0.
	Errno syscall.Errno
	// Needs names the feature that only the C library has, if the code is [core.NeedsLibrary].
	Needs string
}

func failed(code core.Code) *Error { return &Error{Code: code} }

func system(code core.Code, err error) *Error {
	errno, _ := err.(syscall.Errno)
	return &Error{Code: code, Errno: errno}
}

func needs(what string) *Error { return &Error{Code: core.NeedsLibrary, Needs: what} }
