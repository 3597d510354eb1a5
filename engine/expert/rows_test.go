package expert

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"

	"bmoe/flashio"
	"bmoe/flashio/flashtest"
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

// Rows whose read does not return are not waited for once they are given up; the next
// ones come from other memory, and Close keeps what may still be written to.
func TestRowsAreGivenUp(t *testing.T) {
	f := newFixture(t)
	disk := flashtest.NewDisk(nil)
	files, err := flashio.OpenFiles([]string{f.path}, flashio.FileOptions{Opener: disk})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := flashio.OpenLanes(files, flashio.LaneOptions{Lanes: 2})
	if err != nil {
		t.Fatal(err)
	}
	const size, offset = 34, 97
	r, err := NewReadRows(files, size)
	if err != nil {
		t.Fatal(err)
	}
	r.SetReader(reader)
	r.GiveUp(context.Canceled) // nobody waits: nothing happens
	arrived, release := make(chan struct{}), make(chan struct{})
	var hung atomic.Bool
	disk.Before(func(string, int64, int) {
		if !hung.Swap(true) {
			close(arrived)
			<-release
		}
	})
	go func() {
		<-arrived
		r.GiveUp(context.Canceled)
	}()
	var dst [3 * size]byte
	before := r.Bytes()
	if err := r.Gather(dst[:], 0, offset, size, []int64{3, 4, 5}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for range 3 {
		if err := r.Gather(dst[:], 0, offset, size, []int64{3, 4, 5}); err != nil || !bytes.Equal(dst[:], f.bytes[offset+3*size:][:3*size]) {
			t.Errorf("%v, %x", err, dst)
		}
	}
	if r.Bytes() != 2*before {
		t.Errorf("%d bytes, %d before", r.Bytes(), before)
	}
	if err := errors.Join(reader.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	close(release)
}
