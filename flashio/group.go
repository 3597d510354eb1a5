package flashio

import "sync"

// Group waits for requests that belong together. Give it to them as their
// Done, and say with Add how many are submitted before they are. The zero value
// is ready; after Wait it may be used again.
type Group struct {
	wg  sync.WaitGroup
	mu  sync.Mutex
	err error
}

// Add announces n requests.
func (g *Group) Add(n int) { g.wg.Add(n) }

// ReadDone counts one request as over.
func (g *Group) ReadDone(r *Request) {
	if r.Err != nil {
		g.mu.Lock()
		if g.err == nil {
			g.err = r.Err
		}
		g.mu.Unlock()
	}
	g.wg.Done()
}

// Wait waits for all announced requests and returns the first error among them.
func (g *Group) Wait() error {
	g.wg.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.err
	g.err = nil
	return err
}
