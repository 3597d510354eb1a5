package expert

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"

	"bmoe/flashio"
)

// Rows come from the lanes as they come from a mapping, in any order and number, and
// an error of the drive is the gathering's.
func TestRowsGather(t *testing.T) {
	f := newFixture(t)
	reader, err := flashio.OpenLanes(f.files, flashio.LaneOptions{Lanes: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	const size, offset = 34, 97
	r, err := NewReadRows(f.files, size)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	r.SetReader(reader)
	rng := rand.New(rand.NewPCG(1, 2))
	last := int64(len(f.bytes)-offset) / size
	for _, n := range []int{0, 1, 17, 3 * rowsInFlight / 2} {
		rows := make([]int64, n)
		for i := range rows {
			rows[i] = rng.Int64N(last)
		}
		if n > 0 {
			rows[n-1] = last - 1
		}
		got, want := make([]byte, n*size), make([]byte, n*size)
		if err := r.Gather(got, 0, offset, size, rows); err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			copy(want[i*size:][:size], f.bytes[offset+row*int64(size):])
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d rows: others than in the file", n)
		}
	}
	if got := testing.AllocsPerRun(5, func() {
		var dst [2 * size]byte
		if err := r.Gather(dst[:], 0, offset, size, []int64{3, 4}); err != nil {
			t.Fatal(err)
		}
	}); got > 2 { // the arguments
		t.Errorf("%v allocations", got)
	}
	f.opener.fail.Store(true)
	if err := r.Gather(make([]byte, size), 0, offset, size, []int64{last - 1}); !errors.Is(err, syscall.EIO) {
		t.Errorf("a failed read: %v", err)
	}
	if err := r.Gather(make([]byte, size), 0, offset, size, []int64{last + 1}); err == nil {
		t.Error("a row beyond the file was found")
	}
}
