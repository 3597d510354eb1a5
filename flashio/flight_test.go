package flashio_test

import (
	"testing"

	"bmoe/flashio"
	"bmoe/flashio/flashtest"
)

// A read that does not come back is seen with its lane; once nobody waits for it the
// other lanes go on, Close does not wait either, and whenever the read does come back
// it completes and its lane closes what it held.
func TestAReadThatHangs(t *testing.T) {
	disk := flashtest.NewDisk(nil)
	s := openFiles(t, flashio.FileOptions{Opener: disk}, writeFile(t, 1<<20))
	rd, err := flashio.OpenLanes(s, flashio.LaneOptions{Lanes: 2})
	if err != nil {
		t.Fatal(err)
	}
	al := s.Align()
	mem := newArena(t, 4*al).Bytes()
	o := &order{}
	request := func(i int) *flashio.Request {
		return &flashio.Request{Offset: int64(i * al), Buf: mem[i*al:][:al], Need: al, Done: o}
	}
	hang, arrived := make(chan struct{}), make(chan struct{})
	disk.Before(func(_ string, off int64, _ int) {
		if off == 0 {
			close(arrived)
			<-hang
		}
	})
	stuck := request(0)
	rd.Submit(stuck)
	<-arrived
	if now := rd.InFlight(nil); len(now) != 1 || now[0].Request != stuck || now[0].Started == 0 || now[0].Lane != stuck.Lane {
		t.Fatalf("in flight: %+v", now)
	}
	for i := 1; i < 4; i++ { // the other lane
		if err := read(rd, request(i)); err != nil {
			t.Fatal(err)
		}
	}
	rd.Leave(stuck)
	if err := rd.Close(); err != nil {
		t.Fatal(err)
	}
	if open, _ := disk.Handles(); open != 1 {
		t.Errorf("%d handles are open, want the one of the lane that hangs", open)
	}
	o.wg.Add(1)
	close(hang)
	o.wg.Wait()
	if stuck.Err != nil || stuck.N != al {
		t.Errorf("%d bytes, %v", stuck.N, stuck.Err)
	}
	if open, _ := disk.Handles(); open != 0 {
		t.Errorf("%d handles are left open", open)
	}
}

// A read that has ended, and one that waits, cannot be left: Close waits as ever.
func TestOnlyReadsInFlightAreLeft(t *testing.T) {
	withEngines(t, func(t *testing.T, open engine) {
		s := openFiles(t, flashio.FileOptions{}, writeFile(t, 1<<20))
		rd := open(t, s, flashio.LaneOptions{Lanes: 1})
		al := s.Align()
		r := &flashio.Request{Buf: newArena(t, al).Bytes(), Need: al}
		for range 3 {
			rd.Leave(r)
			if err := read(rd, r); err != nil {
				t.Fatal(err)
			}
			if now := rd.InFlight(nil); len(now) != 0 {
				t.Errorf("in flight: %+v", now)
			}
		}
	})
}
