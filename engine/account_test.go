package engine

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/expert"
	"bmoe/engine/expert/policy"
	"bmoe/engine/model"
	"bmoe/flashio"
	"bmoe/internal/conform"
	"bmoe/profile"
)

// plainCache counts what a run should cost from its route alone: pools of slots
// as one list in order of last touch, with nothing of the engine's but how many
// slots a pool has.
type plainCache struct {
	layout expert.Layout
	files  *flashio.Files
	sizes  []int64 // of the shards
	pools  policy.Pools
	held   []int32 // keys, the longest untouched first
	bytes  int64   // of their slots
	read   map[int32]bool
	profile.Record
}

func (c *plainCache) size(key int32) (n int64) {
	for _, p := range c.layout.Layers[int(key)/c.layout.Experts] {
		n += p.Bytes
	}
	return n
}

func (c *plainCache) pool(key int32) int { return c.pools.Of[int(key)/c.layout.Experts] }

// full reports whether a key's pool has no free slot.
func (c *plainCache) full(key int32) bool {
	n := 0
	for _, k := range c.held {
		if c.pool(k) == c.pool(key) {
			n++
		}
	}
	return n == c.pools.Slots[c.pool(key)]
}

func (c *plainCache) evict(at int) {
	c.bytes -= c.pools.Bytes[c.pool(c.held[at])]
	c.held = slices.Delete(c.held, at, at+1)
	c.Evictions++
}

func (c *plainCache) visit(layer int, ids []int32) {
	var hits, misses, touched []int32
	for i := range ids {
		key := int32(layer*c.layout.Experts) + ids[i]
		if slices.Contains(touched, key) {
			continue
		}
		touched = append(touched, key)
		if slices.Contains(c.held, key) {
			hits = append(hits, key)
		} else {
			misses = append(misses, key)
		}
	}
	c.Lookups += int64(len(touched))
	c.Hits += int64(len(hits))
	order := slices.Concat(hits, misses)
	for _, key := range misses {
		if c.full(key) {
			at := slices.IndexFunc(c.held, func(k int32) bool { return c.pool(k) == c.pool(key) && !slices.Contains(touched, k) })
			for i := 0; at < 0; i++ { // none is left but the batch's own, in the order of computing
				at = slices.Index(c.held, order[i])
			}
			c.evict(at)
		}
		c.held = append(c.held, key)
		c.bytes += c.pools.Bytes[c.pool(key)]
		c.ExpertBytes += c.size(key)
		if c.read[key] {
			c.Rereads++
		}
		c.read[key] = true
		for _, p := range c.layout.Layers[layer] {
			align := int64(c.files.Align())
			from := p.Offset + int64(int(key)%c.layout.Experts)*p.Bytes
			up := func(n, to int64) int64 { return (n + to - 1) / to * to }
			to := up(from+p.Bytes, align)
			if runtime.GOOS == "windows" { // windows are of whole 64 KiB there (docs/flash-io.md), but end with the file
				to = min(from/align*align+up(to-from/align*align, 64<<10), up(c.sizes[p.File], align))
			}
			c.WindowBytes += min(to, c.sizes[p.File]) - from/align*align
			c.Reads++
		}
	}
	for _, id := range ids { // the last touch decides
		key := int32(layer*c.layout.Experts) + id
		if at := slices.Index(c.held, key); at >= 0 {
			c.held = append(slices.Delete(c.held, at, at+1), key)
		}
	}
}

// TestRecordsAgreeWithThePlainCache: every token's hits, evictions, re-reads,
// bytes and windows are those that follow from the route.
func TestRecordsAgreeWithThePlainCache(t *testing.T) {
	for _, path := range []string{"models/qwen3moe.gguf", "quants/qwen3moe-q-Q4_K_M.gguf"} {
		for i, layers := range []float64{1, 1, 1.7, 1.7, 3, 3} {
			cfg := DefaultConfig()
			cfg.Overlap = i%2 == 0 // without it nothing is read but what is demanded
			cfg.Model, cfg.Raw, cfg.UBatch = conform.File(t, path), true, 7
			cfg.CachePolicy = "lru"
			cfg.Cache = Budget{Bytes: int64(layers * float64(layerBytes(t, cfg)))}
			s := open(t, cfg)
			c := &plainCache{layout: s.arch.Info().Experts, files: s.files, pools: s.shape.Pools(cfg.Cache.Bytes - s.shape.Reserve(cfg.Cache.Bytes)), read: map[int32]bool{}}
			for _, sh := range s.file.Shards {
				c.sizes = append(c.sizes, sh.Size)
			}
			s.compute.Watch(&model.Observer{Route: func(layer, _ int, ids []int32, _ []float32) { c.visit(layer, ids) }})
			var before, after flashio.Stats
			s.reader.Stats(&before)
			was, records := c.Record, 0
			r, err := s.Generate(context.Background(), backend.Request{Text: prompt, MaxTokens: 24, OnDelta: func(d backend.Delta) {
				if got, now := d.Record, c.Record; got != nil {
					records++
					for _, f := range []struct {
						name      string
						got, want int64
					}{{"lookups", got.Lookups, now.Lookups - was.Lookups}, {"hits", got.Hits, now.Hits - was.Hits},
						{"evictions", got.Evictions, now.Evictions - was.Evictions}, {"rereads", got.Rereads, now.Rereads - was.Rereads},
						{"expert bytes", got.ExpertBytes, now.ExpertBytes - was.ExpertBytes},
						{"window bytes", got.WindowBytes, now.WindowBytes - was.WindowBytes}, {"reads", got.Reads, now.Reads - was.Reads}} {
						if f.got != f.want {
							t.Errorf("%s, %v layers, step %d: %d %s, want %d", path, layers, got.Step, f.got, f.name, f.want)
						}
					}
				}
				was = c.Record
			}})
			if err != nil || r.Err != nil || records != 23 {
				t.Fatalf("%d records, %v, %v", records, err, r.Err)
			}
			s.reader.Stats(&after)
			st := s.streamer.Stats()
			if served := after.Total.Bytes - before.Total.Bytes; served < c.WindowBytes || !cfg.Overlap && served != c.WindowBytes || st.Resident != c.bytes || r.Result.IO.Reads.Value != c.Reads {
				t.Errorf("%s, %v layers: the lanes served %d bytes in %d reads and %d are resident, want %d, %d and %d",
					path, layers, served, r.Result.IO.Reads.Value, st.Resident, c.WindowBytes, c.Reads, c.bytes)
			}
		}
	}
}

// What nobody measured is not measured: reads through the mapping are page
// faults, and with dense weights in the mapping no token has a known ceiling.
func TestStallAndCeilingFollowFromWhereTheWeightsAre(t *testing.T) {
	for _, c := range []struct {
		name           string
		change         func(*Config)
		stall, ceiling bool
	}{
		{"streamed", func(*Config) {}, true, true},
		{"computed from the mapping", func(c *Config) { c.Stream = false }, false, false},
		{"dense weights mapped", func(c *Config) { c.Dense = DenseMmap }, true, false},
		{"dense weights warmed", func(c *Config) { c.Dense = DenseWarm }, true, false},
	} {
		cfg := DefaultConfig()
		cfg.Model, cfg.Raw = conform.File(t, "models/qwen3moe.gguf"), true
		c.change(&cfg)
		s := open(t, cfg)
		r, err := s.Generate(context.Background(), backend.Request{Text: prompt, MaxTokens: 6})
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		p := &r.Result.PerToken
		if p.Stall.OK != c.stall || p.StallUnion.OK != c.stall || r.Sum.Stall.OK != c.stall || r.Result.CeilingTPS.OK != c.ceiling || !p.Wall.OK || !p.MgmtSerial.OK {
			t.Errorf("%s: %+v, ceiling %v", c.name, *p, r.Result.CeilingTPS)
		}
		records := make([]profile.Record, 8)
		if n := s.History(0, records); n != 5 || records[0].Step != 2 || records[4].Token != r.Result.TokenIDs[5] {
			t.Errorf("%s: a history of %d records, %+v", c.name, n, records[:n])
		}
	}
}
