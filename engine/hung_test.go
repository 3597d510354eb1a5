package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/flashio"
	"bmoe/flashio/flashtest"
	"bmoe/internal/clock"
	"bmoe/internal/conform"
)

// hanging is a disk on which one read of the experts does not return until it is told
// to.
type hanging struct {
	*flashtest.Disk
	mu      sync.Mutex
	in      int // reads until one hangs; 0: none does
	arrived chan struct{}
	release chan struct{}
	at      int64 // where it is
}

func newHanging() *hanging {
	d := &hanging{Disk: flashtest.NewDisk(nil)}
	d.Before(func(_ string, off int64, _ int) {
		d.mu.Lock()
		arrived, release := d.arrived, d.release
		hangs := d.in == 1
		d.in = max(0, d.in-1)
		if hangs {
			d.at = off
		}
		d.mu.Unlock()
		if hangs {
			close(arrived)
			<-release
		}
	})
	return d
}

// next makes the n-th read from now on hang.
func (d *hanging) next(n int) (arrived, release chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.in, d.arrived, d.release = n, make(chan struct{}), make(chan struct{})
	return d.arrived, d.release
}

// on gives a session lanes on the disk.
func (d *hanging) on(t *testing.T, s *Session, lanes int) *flashio.Files {
	t.Helper()
	files, err := flashio.OpenFiles([]string{s.cfg.Model}, flashio.FileOptions{Opener: d})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := flashio.OpenLanes(files, flashio.LaneOptions{Lanes: lanes, GiveUp: s.unwanted})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.reader.Close(); err != nil {
		t.Fatal(err)
	}
	s.reader = reader
	s.streamer.SetReader(reader)
	return files
}

// A read that does not return is told once, with lane, expert and offset. A stop does
// not wait for it, the session lives on with its other lanes and says what it always
// says, its slots are right whether the read returns or not, and quitting does not wait
// either.
func TestAReadThatHangs(t *testing.T) {
	for _, returns := range []bool{true, false} {
		for _, prefetch := range []string{"0", "1"} {
			t.Run(fmt.Sprint("returns ", returns, ", prefetch ", prefetch), func(t *testing.T) {
				cfg := DefaultConfig()
				cfg.Model, cfg.Raw, cfg.Threads = conform.File(t, "models/qwen3moe.gguf"), true, 2
				cfg.Cache = Budget{Bytes: 3 * layerBytes(t, cfg)}
				if err := errors.Join(cfg.Set("predict-prefetch", prefetch, backend.FromFlag), cfg.Set("token-prefetch", backend.OnOff(prefetch != "0"), backend.FromFlag)); err != nil {
					t.Fatal(err)
				}
				want, _ := outcome(t, cfg)
				s := open(t, cfg)
				disk := newHanging()
				disk.on(t, s, 3)
				s.letGo = time.Millisecond
				var told []string
				s.Notify(func(text string) { told = append(told, text) })

				arrived, release := disk.next(40)
				ctx, stop := context.WithCancel(context.Background())
				looked := make(chan struct{})
				go func() {
					defer close(looked)
					<-arrived
					now := clock.Now()
					s.hung.look(s, now+(hungAfter-time.Second).Nanoseconds()) // not yet
					s.hung.look(s, now+2*hungAfter.Nanoseconds())
					s.hung.look(s, now+3*hungAfter.Nanoseconds())
					stop()
				}()
				r, err := s.Generate(ctx, backend.Request{Text: prompt, MaxTokens: 24})
				<-looked
				if early := prefetch != "0" && r.Err == nil; err != nil || !early && (!errors.Is(r.Err, context.Canceled) || r.Result.StopReason != stopCancelled) {
					t.Fatalf("%v, %+v", err, r.Err) // what was only guessed holds nobody up
				}
				// Others may have been in flight, too, and hang by that clock.
				whole := strings.Join(told, "\n")
				if named := fmt.Sprintf("%s at %d)", cfg.Model, disk.at); len(told) < 1 || len(told) > 2 || !strings.Contains(whole, named) && !strings.Contains(whole, "other lane") ||
					!strings.Contains(whole, "lane ") || !strings.Contains(whole, "layer ") || !strings.Contains(whole, "expert ") || !strings.Contains(whole, "for 60 s") {
					t.Errorf("told %q", told)
				}
				slots := s.streamer.Stats().Slots
				if returns {
					close(release)
				}
				for range 2 {
					r, err := s.Generate(context.Background(), backend.Request{Text: prompt, MaxTokens: 24})
					if err != nil || r.Err != nil {
						t.Fatal(err, r.Err)
					}
					if got := fmt.Sprint(r.Result.TextSHA256, r.Result.TokenIDs); got != want.hash {
						t.Errorf("after a read that hung the text is another: %s", r.Result.Text)
					}
					s.NewChat()
				}
				if st := s.streamer.Stats(); st.Slots != slots {
					t.Errorf("%d slots, %d before", st.Slots, slots)
				}
				o := s.Apply(map[string]string{"cache": fmt.Sprint(s.cfg.Cache.MiB() + 1)})
				if wantWord := map[bool]backend.Verdict{true: backend.Applied, false: backend.Declined}[returns]; len(o) != 1 || o[0].Verdict != wantWord {
					t.Errorf("changing the cache: %+v", o)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				open, _ := disk.Handles()
				if wantOpen := map[bool]int{true: 0, false: 1}[returns]; open != wantOpen {
					t.Errorf("%d handles are open, want %d", open, wantOpen)
				}
				if !returns {
					close(release) // for the goroutine's sake
				}
			})
		}
	}
}

// A load that is stopped does not wait for a read that hangs.
func TestALoadThatHangs(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = conform.File(t, "models/qwen3moe.gguf"), true
	s := open(t, cfg)
	disk := newHanging()
	disk.on(t, s, 2)
	arrived, release := disk.next(3)
	defer close(release)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		<-arrived
		stop()
	}()
	arena, err := readDense(ctx, s.registry, s.files, s.reader, time.Millisecond, func(float64) {})
	if arena != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", arena, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
