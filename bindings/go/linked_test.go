//go:build cgo && !tollbar_purego

package tollbar_test

// With the library linked no call on the way of a decision allocates memory.
const allocationsMost, takeManyAllocationsMost = 0, 0
