package shared

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// The time namespace of this process, as in crates/tollbar/src/namespace.rs.

// ahead is how far CLOCK_MONOTONIC of this process is ahead of that in the machine's first time namespace, in nanoseconds; false if the system does not
// say. Its clocks are on the machine's scale, so that processes of different time namespaces can share a table.
var ahead, onMachineClock = aheadOfMachine()

// firstTime is the number of the machine's first time namespace (FIRST_TIME).
const firstTime = 0xefff_fffa

func aheadOfMachine() (int64, bool) {
	own, ok := linkNumber("/proc/self/ns/time")
	if !ok {
		own, ok = timeByPidfd()
	}
	if !ok {
		// A kernel without time namespaces has the link of another kind alone.
		_, ok = linkNumber("/proc/self/ns/pid")
		return 0, ok
	}
	if own == firstTime {
		return 0, true
	}
	// The file has the offsets of the children's namespace. After an unshare that is not this process's own.
	if children, ok := linkNumber("/proc/self/ns/time_for_children"); !ok || children != own {
		return 0, false
	}
	text, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		return 0, false
	}
	return parseOffset(string(text))
}

// parseOffset parses the line `monotonic SECONDS NANOSECONDS` (parse_offsets).
func parseOffset(text string) (int64, bool) {
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "monotonic" {
			continue
		}
		seconds, err := strconv.ParseInt(words[1], 10, 64)
		nanoseconds, other := strconv.ParseUint(words[2], 10, 62)
		const second = 1_000_000_000
		if err != nil || other != nil || seconds > (1<<63-1)/second-1 || seconds < -(1<<63-1)/second {
			return 0, false
		}
		return seconds*second + int64(nanoseconds), true
	}
	return 0, false
}

// linkNumber is the number in a link such as `time:[4026531834]` (link_number).
func linkNumber(path string) (uint32, bool) {
	text, err := os.Readlink(path)
	_, digits, found := strings.Cut(text, "[")
	digits, ends := strings.CutSuffix(digits, "]")
	if err != nil || !found || !ends {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 32)
	return uint32(number), err == nil
}

// timeByPidfd is the number of the time namespace by a descriptor of the process (Linux 6.11), for a process without /proc (by_pidfd).
func timeByPidfd() (uint32, bool) {
	const (
		pidfdOpen        = 434
		getTimeNamespace = 0xff07
	)
	process, _, errno := syscall.Syscall(pidfdOpen, uintptr(os.Getpid()), 0, 0)
	if errno != 0 {
		return 0, false
	}
	defer syscall.Close(int(process))
	namespace, _, errno := syscall.Syscall(syscall.SYS_IOCTL, process, getTimeNamespace, 0)
	if errno != 0 {
		return 0, false
	}
	defer syscall.Close(int(namespace))
	var status syscall.Stat_t
	err := syscall.Fstat(int(namespace), &status)
	return uint32(status.Ino), err == nil
}
