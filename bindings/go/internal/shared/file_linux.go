//go:build linux && (amd64 || arm64)

package shared

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// Tables in files, as in src/table/memory/region/file.rs, named.rs, trust.rs and system.rs. A call opens the file if it
// exists. Otherwise it makes the file without a name or under a temporary one, and links it to its name when it is
// complete, so no process can open an incomplete table.

const (
	// roundsOfOpen: a try fails only if another process makes the file and removes it again meanwhile.
	roundsOfOpen = 64
	// headBytes are read from an existing file before it is mapped: a table's header and its policies (HEAD).
	headBytes = 36 << 10

	// existing does not follow a symbolic link, does not wait for the other end of a pipe, and does not make a terminal
	// the controlling one.
	existing = syscall.O_RDWR | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY
	oPath    = 0x200000
	oTmpfile = 0x400000 | syscall.O_DIRECTORY

	atFDCWD         = -100
	atSymlinkFollow = 0x400

	strangers = 0o022
	others    = 0o002
	sticky    = 0o1000
)

// inspector inspects the first bytes of a file, and returns the length of its table.
type inspector = func(head []byte) (uint64, core.Code)

// again repeats a call as long as signals interrupt it.
func again(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}

// openAt opens a name in a directory (Fd::open).
func openAt(directory int, name string, flags int) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = syscall.Openat(directory, name, flags|syscall.O_CLOEXEC, 0o600)
		return err
	})
	return fd, err
}

func statusOf(fd int) (status syscall.Stat_t, err error) {
	err = again(func() error { return syscall.Fstat(fd, &status) })
	return status, err
}

func isRegular(s *syscall.Stat_t) bool { return s.Mode&syscall.S_IFMT == syscall.S_IFREG }

// place is a path: an open directory, which stays the same one if another process renames it, and a name in it (Place).
type place struct {
	directory int
	// absolute is the path of the directory, without symbolic links.
	absolute, name string
}

func placeOf(path string) (*place, *Error) {
	slash := strings.LastIndexByte(path, '/') + 1
	parent, name := path[:slash], path[slash:]
	if name == "" || strings.IndexByte(path, 0) >= 0 {
		return nil, system(errOpen, syscall.ENOENT)
	}
	if parent == "" {
		parent = "."
	}
	fd, err := openAt(atFDCWD, parent, oPath|syscall.O_DIRECTORY)
	if err != nil {
		return nil, system(errOpen, err)
	}
	absolute, wrong := filepath.EvalSymlinks(parent)
	if wrong == nil {
		absolute, wrong = filepath.Abs(absolute)
	}
	if wrong != nil {
		syscall.Close(fd)
		return nil, system(errOpen, syscall.ENOENT)
	}
	return &place{fd, absolute, name}, nil
}

func (p *place) close() { syscall.Close(p.directory) }

func (p *place) status() (syscall.Stat_t, *Error) {
	status, err := statusOf(p.directory)
	if err != nil {
		return status, system(errOpen, err)
	}
	return status, nil
}

// stranger reports whether this user is neither the caller nor root.
func stranger(user uint32) bool { return user != 0 && user != uint32(os.Geteuid()) }

func (a *Access) unless(strange bool) *Error {
	if strange && !a.TrustAnyone {
		return failed(errOwner)
	}
	return nil
}

// ofDirectory checks that no user but the caller, root and the directory's group can rename or remove another's file
// (Access::of_directory).
func (a *Access) ofDirectory(d *syscall.Stat_t) *Error {
	replaceable := d.Mode&others != 0 && d.Mode&sticky == 0
	return a.unless(stranger(d.Uid) || replaceable)
}

// ofFile checks that the file, in a directory that has passed ofDirectory, may be opened (Access::of_file).
func (a *Access) ofFile(d, f *syscall.Stat_t) *Error {
	writable := f.Mode&strangers&^a.Mode != 0
	// In a directory that other users can write, one of them may have linked another table of the same owner under this
	// name.
	linked := d.Mode&strangers != 0 && f.Nlink > 1
	return a.unless(stranger(f.Uid) || writable || linked)
}

// openFile opens the table at path, which must exist (file::open).
func openFile(path string, access Access, inspect inspector) (region, *Error) {
	p, wrong := placeOf(path)
	if wrong != nil {
		return region{}, wrong
	}
	defer p.close()
	r, found, wrong := attach(p, access, inspect)
	if wrong == nil && !found {
		wrong = system(errOpen, syscall.ENOENT)
	}
	return r, wrong
}

// openOrCreate opens the table at path, or makes one of so many bytes (file::open_or_create). fill gets the zeroed
// memory of a new file.
func openOrCreate(path string, bytes uint64, access Access, inspect inspector, fill func(*region) *Error) (region, *Error) {
	p, wrong := placeOf(path)
	if wrong != nil {
		return region{}, wrong
	}
	defer p.close()
	directory, wrong := p.status()
	if wrong == nil {
		wrong = access.ofDirectory(&directory)
	}
	if wrong != nil {
		return region{}, wrong
	}
	for range roundsOfOpen {
		r, found, wrong := attach(p, access, inspect)
		if wrong != nil || found {
			return r, wrong
		}
		r, made, wrong := create(p, bytes, access.Mode, fill, true)
		// An unnamed file fails with many errors (old kernel, filesystem, no /proc). A failure that is not due to that
		// happens to the named file, too.
		if wrong != nil && (wrong.Code == errOpen || wrong.Code == errLink) {
			r, made, wrong = create(p, bytes, access.Mode, fill, false)
		}
		if wrong != nil || made {
			return r, wrong
		}
	}
	return region{}, system(errLink, syscall.EEXIST)
}

// attach opens the existing file (file::attach); false if there is none.
func attach(p *place, access Access, inspect inspector) (r region, found bool, wrong *Error) {
	fd, err := openAt(p.directory, p.name, existing)
	if err == syscall.ENOENT {
		return r, false, nil
	}
	if err != nil {
		// Directories, symbolic links, sockets and absent devices each fail to open with another error.
		if by, other := openAt(p.directory, p.name, oPath|syscall.O_NOFOLLOW); other == nil {
			defer syscall.Close(by)
			if status, other := statusOf(by); other == nil && !isRegular(&status) {
				return r, false, failed(errNotATable)
			}
		}
		return r, false, system(errOpen, err)
	}
	defer syscall.Close(fd)
	status, err := statusOf(fd)
	switch {
	case err != nil:
		return r, false, system(errRead, err)
	case !isRegular(&status):
		return r, false, failed(errNotATable)
	}
	// The status is that of the open file: another process may have given its name to another file meanwhile.
	directory, wrong := p.status()
	if wrong == nil {
		wrong = access.ofDirectory(&directory)
	}
	if wrong == nil {
		wrong = access.ofFile(&directory, &status)
	}
	if wrong != nil {
		return r, false, wrong
	}
	bytes, wrong := inspected(fd, &status, inspect)
	if wrong != nil {
		return r, false, wrong
	}
	// A copy of a file may lack the blocks that held only zeroes, so they are reserved again. On a full disk the call
	// may fail even for a file that has all its blocks; that error is ignored. If the filesystem cannot reserve, the
	// file stays as it is.
	missing := bytes - min(bytes, uint64(status.Blocks)*512)
	if err = hasRoom(fd, missing); err == nil {
		_, err = reserve(fd, bytes)
	}
	if err != nil && missing != 0 {
		return r, false, system(errNoSpace, err)
	}
	r, wrong = mapped(fd, bytes, p, &status)
	return r, wrong == nil, wrong
}

// inspected is the length of a table's file. It is an error if the header says another length.
func inspected(fd int, status *syscall.Stat_t, inspect inspector) (uint64, *Error) {
	head := make([]byte, headBytes)
	got := 0
	for got < len(head) {
		n, err := syscall.Pread(fd, head[got:], int64(got))
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 0, system(errRead, err)
		}
		if n == 0 {
			break
		}
		got += n
	}
	bytes, code := inspect(head[:got])
	switch {
	case code != 0:
		return 0, failed(code)
	case bytes != uint64(status.Size):
		return 0, failed(errTruncated)
	}
	return bytes, nil
}

// create makes the file (file::create); false if another process made it first. An unnamed file has no name until it
// is complete, so the kernel removes it if the process is killed.
func create(p *place, bytes uint64, mode uint32, fill func(*region) *Error, unnamed bool) (r region, made bool, wrong *Error) {
	if bytes > math.MaxInt64 {
		return r, false, failed(errCapacity)
	}
	name, flags := ".", oTmpfile|syscall.O_RDWR
	if !unnamed {
		var random [8]byte
		if _, err := rand.Read(random[:]); err != nil {
			return r, false, failed(errRandom)
		}
		name = fmt.Sprintf(".tollbar-%d-%s", os.Getpid(), hex.EncodeToString(random[:]))
		flags = syscall.O_RDWR | syscall.O_CREAT | syscall.O_EXCL | syscall.O_NOFOLLOW
	}
	fd, err := openAt(p.directory, name, flags)
	if err != nil {
		return r, false, system(errOpen, err)
	}
	defer syscall.Close(fd)
	if !unnamed {
		defer syscall.Unlinkat(p.directory, name)
	}
	status, err := statusOf(fd)
	if err != nil {
		return r, false, system(errRead, err)
	}
	// The kernel ends a process (SIGXFSZ) that exceeds its limit of a file's length.
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit) == nil && bytes > limit.Cur {
		return r, false, system(errNoSpace, syscall.EFBIG)
	}
	if err := again(func() error { return syscall.Ftruncate(fd, int64(bytes)) }); err != nil {
		return r, false, system(errNoSpace, err)
	}
	reserved, err := reserve(fd, bytes)
	if err == nil && !reserved {
		err = writeZeroes(fd, bytes)
	}
	if err != nil {
		return r, false, system(errNoSpace, err)
	}
	if r, wrong = mapped(fd, bytes, p, &status); wrong != nil {
		return r, false, wrong
	}
	defer func() {
		if !made {
			r.free()
		}
	}()
	if wrong = fill(&r); wrong != nil {
		return r, false, wrong
	}
	// It sets the permissions before the name, so that no other user can open the file in between. It flushes before the
	// name, so that after a power failure no name leads to an incomplete table.
	if err := again(func() error { return syscall.Fchmod(fd, mode&0o777) }); err != nil {
		return r, false, system(errOpen, err)
	}
	if err := again(func() error { return syscall.Fsync(fd) }); err != nil {
		return r, false, system(errSync, err)
	}
	from, path, follow := p.directory, name, 0
	if unnamed {
		// /proc has a symbolic link to the unnamed file, with the number of its descriptor.
		from, path, follow = atFDCWD, fmt.Sprint("/proc/self/fd/", fd), atSymlinkFollow
	}
	switch err := linkAt(from, path, p.directory, p.name, follow); err {
	case 0:
		return r, true, nil
	case syscall.EEXIST:
		return r, false, nil
	default:
		return r, false, system(errLink, err)
	}
}

func linkAt(from int, path string, to int, name string, flags int) syscall.Errno {
	old, err := syscall.BytePtrFromString(path)
	next, other := syscall.BytePtrFromString(name)
	if err != nil || other != nil {
		return syscall.EINVAL
	}
	_, _, errno := syscall.Syscall6(
		syscall.SYS_LINKAT, uintptr(from), uintptr(unsafe.Pointer(old)), uintptr(to), uintptr(unsafe.Pointer(next)), uintptr(flags), 0)
	return errno
}

// reserve makes the filesystem allocate blocks for the file, without changing its content (Fd::reserve). false if the
// filesystem cannot.
func reserve(fd int, bytes uint64) (bool, error) {
	// The first call is for the whole file. A signal interrupts a call, which may undo it. The next calls are for parts,
	// so that frequent signals do not keep a large file from being finished.
	const part = 16 << 20
	most := bytes
	for at := uint64(0); at < bytes; {
		next := min(bytes-at, most)
		switch err := syscall.Fallocate(fd, 0, int64(at), int64(next)); err {
		case nil:
			at += next
		case syscall.EINTR:
			most = part
		case syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EINVAL:
			return false, nil
		default:
			return false, err
		}
	}
	return true, nil
}

// hasRoom is ENOSPC if the filesystem has fewer than bytes free bytes, and nil if it does not say (Fd::has_room).
func hasRoom(fd int, bytes uint64) error {
	var s syscall.Statfs_t
	if err := again(func() error { return syscall.Fstatfs(fd, &s) }); err != nil || s.Blocks == 0 {
		return nil
	}
	// Filesystems keep some blocks for root.
	blocks, unit := s.Bavail, uint64(s.Frsize)
	if os.Geteuid() == 0 {
		blocks = s.Bfree
	}
	if unit == 0 {
		unit = uint64(s.Bsize)
	}
	if unit != 0 && bytes/unit >= blocks && bytes > blocks*unit {
		return syscall.ENOSPC
	}
	return nil
}

// writeZeroes overwrites the first bytes of the file.
func writeZeroes(fd int, bytes uint64) error {
	zeroes := make([]byte, 4096)
	for at := uint64(0); at < bytes; {
		n, err := syscall.Pwrite(fd, zeroes[:min(bytes-at, uint64(len(zeroes)))], int64(at))
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case n == 0:
			return syscall.ENOSPC
		}
		at += uint64(max(n, 0))
	}
	return nil
}

// mapped maps the file. Another process may truncate a mapped file. Then the system ends (SIGBUS) each process that
// touches the missing pages. The file's permissions say which users can do so.
func mapped(fd int, bytes uint64, p *place, status *syscall.Stat_t) (region, *Error) {
	data, err := syscall.Mmap(fd, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err == syscall.ENOMEM {
		return region{}, failed(errNoMemory)
	}
	if err != nil {
		return region{}, system(errMap, err)
	}
	return region{
		base: unsafe.Pointer(unsafe.SliceData(data)), len: bytes,
		named: &named{filepath.Join(p.absolute, p.name), status.Dev, status.Ino, inodeInMemory(fd)},
		free:  func() { syscall.Munmap(data) },
	}, nil
}

// named is the name and the identity of a region's file (Named).
type named struct {
	path   string
	dev    uint64
	number uint64
	// inode is the name of a file in tmpfs, otherwise 0.
	inode uint64
}

func (n *named) is(other *named) bool { return n.dev == other.dev && n.number == other.number }

// exclusively calls f while no other process and no other goroutine is in this function for the same file
// (Region::exclusively). The kernel releases the lock of a killed process.
func (n *named) exclusively(f func()) *Error {
	fd, err := openAt(atFDCWD, n.path, existing)
	if err != nil {
		return system(errLock, err)
	}
	defer syscall.Close(fd)
	status, err := statusOf(fd)
	if err != nil {
		return system(errLock, err)
	}
	if status.Dev != n.dev || status.Ino != n.number {
		return system(errLock, syscall.ESTALE)
	}
	if err := again(func() error { return syscall.Flock(fd, syscall.LOCK_EX) }); err != nil {
		return system(errLock, err)
	}
	defer syscall.Flock(fd, syscall.LOCK_UN)
	f()
	return nil
}
