package shared

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// The namespaces of this process, as in src/namespace.rs, and its name, as in src/table/memory/region/process.rs.

// ahead is how far CLOCK_MONOTONIC of this process is ahead of that in the machine's first time namespace, in
// nanoseconds; false if the system does not say. Its clocks are on the machine's scale, so that processes of
// different time namespaces can share a table.
var ahead, onMachineClock = aheadOfMachine()

// firstTime is the number of the machine's first time namespace (FIRST_TIME).
const firstTime = 0xefff_fffa

func aheadOfMachine() (int64, bool) {
	own, ok := namespace("/proc/self/ns/time", getTimeNamespace)
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

// self is this process's name in turns of returns: its PID namespace, 0 if that is unknown, and its number there
// (process).
var self = func() uint64 {
	pids, _ := namespace("/proc/self/ns/pid", getPIDNamespace)
	return uint64(pids)<<32 | uint64(uint32(os.Getpid()))
}()

// isGone reports whether no process has this number (is_process_gone). false if the system does not say.
func isGone(number uint32) bool {
	// 0 and negative numbers mean groups of processes. Signal 0 checks for the process and sends nothing.
	return int32(number) > 0 && syscall.Kill(int(number), 0) == syscall.ESRCH
}

// rest lets other goroutines, threads and processes run.
func rest() {
	runtime.Gosched()
	syscall.Syscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
}

// namespace is the number of a namespace of this process, by its link or otherwise by byPidfd (number).
func namespace(link string, request uintptr) (uint32, bool) {
	if number, ok := linkNumber(link); ok {
		return number, true
	}
	return byPidfd(request)
}

// Requests for a namespace of a process's descriptor.
const getPIDNamespace, getTimeNamespace = 0xff05, 0xff07

// byPidfd is the number of a namespace by a descriptor of the process (Linux 6.11), for a process without /proc
// (by_pidfd).
func byPidfd(request uintptr) (uint32, bool) {
	const pidfdOpen = 434
	process, _, errno := syscall.Syscall(pidfdOpen, uintptr(os.Getpid()), 0, 0)
	if errno != 0 {
		return 0, false
	}
	defer syscall.Close(int(process))
	namespace, _, errno := syscall.Syscall(syscall.SYS_IOCTL, process, request, 0)
	if errno != 0 {
		return 0, false
	}
	defer syscall.Close(int(namespace))
	var status syscall.Stat_t
	err := syscall.Fstat(int(namespace), &status)
	return uint32(status.Ino), err == nil
}
