package shared

// boot names the boot that a file's content is of (Boot). 0: unknown.
type boot struct {
	id    [2]uint64
	inode uint64
}

// What two boots say (Agreement).
const (
	sameBoot = iota
	otherBoot
	unknownBoot
)

// boot is this boot, as the header of an object in this memory notes it (Region::boot).
func (r *region) boot() (b boot) {
	b.id, _ = bootID()
	if r.named != nil {
		b.inode = r.named.inode
	}
	return b
}

func (b boot) known() bool { return b.id != [2]uint64{} || b.inode != 0 }

// agrees is what a file's header, whose names b has, says of here (Boot::agrees). A name that cannot be read agrees
// with nothing, and differs from nothing.
func (b boot) agrees(here boot) int {
	known := b.id != [2]uint64{} && here.id != [2]uint64{}
	switch {
	case known && b.id == here.id, b.inode != 0 && b.inode == here.inode:
		return sameBoot
	case known:
		return otherBoot
	default:
		return unknownBoot
	}
}

// noted is the boot that the header notes (Noted::load).
func (h *header) noted() boot {
	return boot{[2]uint64{h.boot[0].Load(), h.boot[1].Load()}, h.inode.Load()}
}

// note notes a boot, word by word (Noted::store). A reader in between sees ids that agree with none.
func (h *header) note(b boot) {
	h.inode.Store(0)
	h.boot[1].Store(0)
	h.boot[0].Store(b.id[0])
	h.boot[1].Store(b.id[1])
	h.inode.Store(b.inode)
}
