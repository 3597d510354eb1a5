package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bmoe/internal/clock"
	"bmoe/internal/durable"
	"bmoe/internal/units"
)

// Plan is what a download would take.
type Plan struct {
	Spec Spec
	Set  Set
	Left int64 // bytes that are not there yet
	Dir  string

	commit string
}

// incomplete ends the names of blobs that are not whole.
const incomplete = ".incomplete"

// spare is what a download leaves free on the drive.
const spare = 256 * units.MiB

// Plan asks the hub which files a model has. No byte of them is read.
func (h *Hub) Plan(ctx context.Context, spec Spec) (*Plan, error) {
	if h.offline {
		return nil, fmt.Errorf("%s is not in %s, and %s is set", spec, h.cache, OfflineVariable)
	}
	repo, err := h.list(ctx, spec.Repo)
	if err != nil {
		return nil, err
	}
	p := &Plan{Spec: spec, commit: repo.commit, Dir: h.cache}
	if p.Set, err = choose(spec, repo.files); err != nil {
		return nil, err
	}
	for _, f := range p.Set.Files {
		p.Left += f.Size - h.have(spec.Repo, f)
	}
	return p, nil
}

// have is how many bytes of a file are there.
func (h *Hub) have(repo string, f File) int64 {
	if info, err := os.Stat(h.blob(repo, f)); err == nil && info.Size() == f.Size {
		return f.Size
	}
	if info, err := os.Stat(h.blob(repo, f) + incomplete); err == nil {
		return min(info.Size(), f.Size)
	}
	return 0
}

// NoSpaceError is a model that does not fit on the drive.
type NoSpaceError struct {
	Dir        string
	Need, Free int64 // bytes
}

func (e *NoSpaceError) Error() string {
	return fmt.Sprintf("%s has %s free, and the model needs %s more: make room, or set %s to a folder on another drive", e.Dir, units.Size(e.Free), units.Size(e.Need), CacheVariable)
}

// Progress is how far a download is.
type Progress struct {
	Name        string // of the file that is read
	Done, Total int64  // bytes of the model, with those that were there before
	Rate        float64
	Left        time.Duration // at the rate so far; 0 before there is one
	Checking    bool          // what was there before is read, nothing is downloaded
}

// Download brings the files of a plan and returns the path of the first. What has come
// by the time it is cancelled, or fails, is where the next one goes on from.
func (h *Hub) Download(ctx context.Context, p *Plan, tell func(Progress)) (string, error) {
	if err := os.MkdirAll(h.folder(p.Spec.Repo), 0o755); err != nil {
		return "", err
	}
	if free, ok := h.free(h.folder(p.Spec.Repo)); ok && p.Left > 0 && free < p.Left+spare {
		return "", &NoSpaceError{h.cache, p.Left + spare, free}
	}
	d := &download{hub: h, plan: p, tell: tell, total: p.Set.Size(), began: clock.Now()}
	first := ""
	for _, f := range p.Set.Files {
		d.name = f.Path
		if err := d.file(ctx, f); err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return "", fmt.Errorf("download %s: %w", f.Path, err)
		}
		place, err := h.link(p.Spec.Repo, p.commit, f)
		if err != nil {
			return "", fmt.Errorf("keep %s: %w", f.Path, err)
		}
		if first == "" {
			first = place
		}
	}
	if err := h.remember(p.Spec.Repo, p.commit); err != nil {
		return "", err
	}
	return first, nil
}

// download is one that goes on.
type download struct {
	hub   *Hub
	plan  *Plan
	tell  func(Progress)
	name  string
	total int64
	done  int64 // bytes of the files so far
	came  int64 // of them over the network
	began int64
	told  int64
}

// tellEvery is how often progress is told of.
const tellEvery = int64(100 * time.Millisecond)

func (d *download) report(checking bool) {
	now := clock.Now()
	if d.tell == nil || now-d.told < tellEvery && d.done < d.total {
		return
	}
	d.told = now
	p := Progress{Name: d.name, Done: d.done, Total: d.total, Checking: checking}
	if s := units.InSeconds(now - d.began); d.came > 0 && s > 0 {
		p.Rate = float64(d.came) / s
		p.Left = time.Duration(float64(d.total-d.done) / p.Rate * float64(time.Second))
	}
	d.tell(p)
}

// tries is how often a download begins again without having come any further.
const tries = 5

// stallPatience is how long nothing may come.
const stallPatience = time.Minute

var errHash = errors.New("what came is not what the hub said: its checksum is another; it is deleted, try again")

// file brings a file's blob.
func (d *download) file(ctx context.Context, f File) error {
	blob := d.hub.blob(d.plan.Spec.Repo, f)
	if info, err := os.Stat(blob); err == nil && info.Size() == f.Size {
		d.done += f.Size // it got its name after its checksum was right
		d.report(false)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(blob), 0o755); err != nil {
		return err
	}
	unlock, err := durable.Lock(blob+".lock", 0)
	if errors.Is(err, durable.ErrBusy) {
		return errors.New("another program is downloading it")
	} else if err != nil {
		return err
	}
	defer os.Remove(blob + ".lock")
	defer unlock()
	part, err := os.OpenFile(blob+incomplete, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer part.Close()
	sum := f.newHash()
	n, err := d.check(ctx, part, sum, f.Size)
	if err != nil {
		return err
	}
	for failed := 0; n < f.Size; {
		got, fresh, err := d.pull(ctx, f, part, sum, n)
		if fresh { // the hub sent all of it
			n = 0
		}
		n += got
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil || !errors.As(err, new(*networkError)):
			return err
		case got > 0:
			failed = 0
		}
		if failed++; failed >= tries {
			return err
		}
		if err := d.hub.wait(ctx, time.Second<<failed); err != nil {
			return err
		}
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.hash {
		part.Close()
		os.Remove(part.Name())
		return errHash
	}
	if err := part.Sync(); err != nil {
		return err
	}
	if err := part.Close(); err != nil {
		return err
	}
	return os.Rename(blob+incomplete, blob)
}

// newHash is the kind of hash that the hub has of a file: of the content, or of git's
// object.
func (f *File) newHash() hash.Hash {
	if f.lfs {
		return sha256.New()
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", f.Size)
	return h
}

// chunk is how much is read or written between two looks at the context.
const chunk = units.MiB

// check reads what is there of a file into its hash, and returns how much it is.
func (d *download) check(ctx context.Context, part *os.File, sum hash.Hash, size int64) (int64, error) {
	info, err := part.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() > size {
		return 0, part.Truncate(0)
	}
	n, buf := int64(0), make([]byte, chunk)
	for n < info.Size() {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		got, err := part.Read(buf)
		sum.Write(buf[:got])
		n += int64(got)
		d.done += int64(got)
		d.report(true)
		if err == io.EOF {
			break
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// pull brings the bytes of a file from one on. fresh means that they are from the
// beginning all the same.
func (d *download) pull(ctx context.Context, f File, part *os.File, sum hash.Hash, from int64) (n int64, fresh bool, err error) {
	var segments []string
	for s := range strings.SplitSeq(f.Path, "/") {
		segments = append(segments, url.PathEscape(s))
	}
	bytes := ""
	if from > 0 {
		bytes = fmt.Sprintf("%d-", from)
	}
	// A connection over which nothing comes is as good as cut.
	reading, stop := context.WithCancel(ctx)
	defer stop()
	stalled := time.AfterFunc(stallPatience, stop)
	defer stalled.Stop()
	r, err := d.hub.get(reading, "/"+d.plan.Spec.Repo+"/resolve/"+d.plan.commit+"/"+strings.Join(segments, "/"), bytes)
	if err != nil {
		if reading.Err() != nil && ctx.Err() == nil {
			err = &networkError{fmt.Errorf("%s: no answer", d.hub.endpoint.Host)}
		}
		return 0, false, err
	}
	defer r.Body.Close()
	if err := d.hub.refused(r, d.plan.Spec.Repo); err != nil {
		return 0, false, err
	}
	var start int64
	if r.StatusCode == http.StatusPartialContent {
		if _, err := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-", &start); err != nil {
			return 0, false, fmt.Errorf("%s: %q is no range", d.hub.endpoint.Host, r.Header.Get("Content-Range"))
		}
	}
	if start != from {
		if start != 0 {
			return 0, false, fmt.Errorf("%s sent bytes from %d on, not from %d", d.hub.endpoint.Host, start, from)
		}
		fresh = true
		d.done -= from
		sum.Reset()
		if !f.lfs {
			fmt.Fprintf(sum, "blob %d\x00", f.Size)
		}
		if err := part.Truncate(0); err != nil {
			return 0, fresh, err
		}
	}
	if _, err := part.Seek(start, io.SeekStart); err != nil {
		return 0, fresh, err
	}
	for buf := make([]byte, chunk); ; {
		got, rerr := r.Body.Read(buf)
		stalled.Reset(stallPatience)
		if start+n+int64(got) > f.Size {
			part.Close()
			os.Remove(part.Name())
			return n, fresh, fmt.Errorf("%s sends more than the %d bytes that it said", d.hub.endpoint.Host, f.Size)
		}
		if _, err := part.Write(buf[:got]); err != nil {
			return n, fresh, err
		}
		sum.Write(buf[:got])
		n += int64(got)
		d.done += int64(got)
		d.came += int64(got)
		d.report(false)
		switch {
		case ctx.Err() != nil:
			return n, fresh, ctx.Err()
		case rerr == io.EOF && start+n == f.Size:
			return n, fresh, nil
		case rerr == io.EOF:
			rerr = io.ErrUnexpectedEOF
			fallthrough
		case rerr != nil:
			return n, fresh, &networkError{fmt.Errorf("%s: the connection ended after %d of %d bytes: %w", d.hub.endpoint.Host, start+n, f.Size, rerr)}
		}
	}
}
