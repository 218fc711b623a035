package shared

import "github.com/tollbar/tollbar/bindings/go/internal/core"

// The records of policies' versions in a table's memory, as in src/table/policies/record.rs and records.rs. Go
// reads records, and writes those of a new table.

const (
	// claimed is the stamp of a record that a writer has claimed and not published.
	claimed = 1
	// rounds is the most tries of a call whose slot or policy other calls change meanwhile (ROUNDS). No call meets so
	// many changes in a row, but damaged memory may look as if it changed for ever.
	rounds = 10_000
)

func versionOf(stamp uint64) int   { return int(stamp & 0xff) }
func policyOf(stamp uint64) uint32 { return uint32(stamp >> 8 & 0xff) }

// read is the policy, if this is the record of the version with stamp, and is complete (Record::read_kept).
func (r *record) read(stamp uint64) (words [recordWords]uint64, ok bool) {
	if stamp <= claimed || r.stamp.Load() != stamp {
		return words, false
	}
	for i := range words {
		words[i] = r.words[i].Load()
	}
	check := r.check.Load()
	return words, check == fold(words[:]...) && r.stamp.Load() == stamp
}

// publish writes a record (Record::publish).
func (r *record) publish(p *core.Policy, stamp uint64) {
	words := encode(p, keepCount)
	for i, word := range words {
		r.words[i].Store(word)
	}
	r.check.Store(fold(words[:]...))
	r.stamp.Store(stamp)
}

// add adds a policy to a new table, which no other thread or process sees yet (records::add).
func (m *memory) add(number int, p *core.Policy) {
	// The generation of the first version is 1, and version 0 is none.
	version := number + 1
	stamp := m.header.generation.Add(1)<<16 | uint64(number)<<8 | uint64(version)
	m.records()[version].publish(p, stamp)
	m.header.current[number].Store(stamp)
}

// currentWords are the record of a policy's current version (records::current_policy); false if the record is damaged.
func (m *memory) currentWords(number uint32) (words [recordWords]uint64, ok bool) {
	stamp := m.currentStamp(number)
	for range rounds {
		words, ok = m.records()[versionOf(stamp)].read(stamp)
		seen := m.currentStamp(number)
		// While this call reads the record, another may change the policy and free the record.
		if ok || seen == stamp {
			return words, ok
		}
		stamp = seen
	}
	return words, false
}

// differ reports whether a table that begins with these bytes certainly has other policies (records::differ). Other
// processes may change the file during the read. If the bytes do not fit together, it returns false, and the caller
// compares again after it has mapped the file.
func differ(head []byte, policies []Policy) bool {
	for number := range PoliciesMost {
		stamp, ok := wordOf(head, currentAt/8+number)
		switch {
		case !ok:
			return false
		case number >= len(policies):
			if stamp != 0 {
				return true
			}
		case stamp == 0:
			return true
		default:
			if words, ok := wordsIn(head, stamp); ok && !samePolicy(&words, &policies[number].Policy) {
				return true
			}
		}
	}
	return false
}

// wordsIn is the record of the version with stamp in a table's first bytes (policy_in).
func wordsIn(head []byte, stamp uint64) (words [recordWords]uint64, ok bool) {
	at := versionsAt/8 + versionOf(stamp)*(2+recordWords)
	for i := range words {
		if words[i], ok = wordOf(head, at+2+i); !ok {
			return words, false
		}
	}
	first, _ := wordOf(head, at)
	check, _ := wordOf(head, at+1)
	return words, first == stamp && check == fold(words[:]...)
}

// samePolicy reports whether words are those of the policy, whatever debts kept when they came to it.
func samePolicy(words *[recordWords]uint64, p *core.Policy) bool {
	found := *words
	found[wordLast] &= 1
	return found == encode(p, keepCount)
}
