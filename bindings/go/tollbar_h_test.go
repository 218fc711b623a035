//go:build cgo && !tollbar_purego

package tollbar

import (
	"reflect"
	"testing"
)

// The structs that Go passes to C have the fields of C's structs, each of the same name, place and
// size. A program that loads libtollbar with purego passes the same structs.
func TestStructsAreCs(t *testing.T) {
	for _, pair := range layouts() {
		g, c := reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1])
		if g.Size() != c.Size() {
			t.Errorf("%s has %d bytes, in C %d", g.Name(), g.Size(), c.Size())
		}
		// Some are arrays in Go, or have other names than in C.
		if g.Kind() != reflect.Struct {
			continue
		}
		if g.NumField() != c.NumField() {
			t.Errorf("%s has %d fields, in C %d", g.Name(), g.NumField(), c.NumField())
			continue
		}
		for i := range g.NumField() {
			a, b := g.Field(i), c.Field(i)
			named := a.Name == b.Name || c.Name()[:len("_Ctype_struct_go")] == "_Ctype_struct_go" || "_"+a.Name == b.Name
			if !named || a.Offset != b.Offset || a.Type.Size() != b.Type.Size() {
				t.Errorf("%s: field %d is %s at %d of %d bytes, in C %s at %d of %d bytes", g.Name(), i,
					a.Name, a.Offset, a.Type.Size(), b.Name, b.Offset, b.Type.Size())
			}
		}
	}
}
