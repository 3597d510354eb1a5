package synth

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"bmoe/engine/gguf"
	"bmoe/engine/quant"
	"bmoe/internal/conform"
)

// A plain float64 forward pass of qwen3moe over a whole sequence, to see what
// the random weights do. It is written for reading and shares nothing with the
// engine.
type plain struct {
	Spec
	w map[string][]float32
}

func elements(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

func load(t *testing.T, s Spec) *plain {
	path := filepath.Join(conform.TempDir(t), "m.gguf")
	must(t, Write(path, s))
	f, err := gguf.Open(path)
	must(t, err)
	b, err := os.ReadFile(path)
	must(t, err)
	p := &plain{s, map[string][]float32{}}
	for _, x := range f.Tensors {
		v := make([]float32, elements(x.Dims))
		must(t, quant.Dequantize(x.Type, v, b[x.Offset:x.Offset+x.Size]))
		p.w[x.Name] = v
	}
	return p
}

// rows multiplies a matrix, given as its rows one after the other, with x.
func rows(w []float32, x []float64) []float64 {
	out := make([]float64, len(w)/len(x))
	for i := range out {
		for j, v := range x {
			out[i] += float64(w[i*len(x)+j]) * v
		}
	}
	return out
}

func rms(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum / float64(len(x)))
}

func norm(w []float32, x []float64) []float64 {
	out, r := make([]float64, len(x)), math.Sqrt(rms(x)*rms(x)+1e-6)
	for i, v := range x {
		out[i] = v / r * float64(w[i])
	}
	return out
}

func rope(x []float64, pos int) {
	half := len(x) / 2
	for i := range half {
		sin, cos := math.Sincos(float64(pos) * math.Pow(1e6, -float64(i)/float64(half)))
		x[i], x[i+half] = x[i]*cos-x[i+half]*sin, x[i]*sin+x[i+half]*cos
	}
}

func softmax(x []float64) {
	top, sum := slices.Max(x), 0.0
	for i := range x {
		x[i] = math.Exp(x[i] - top)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

func add(to, x []float64, factor float64) {
	for i := range to {
		to[i] += x[i] * factor
	}
}

// state is what a sequence has left behind.
type state struct {
	k, v [][][]float64 // [layer][position][KVHeads*HeadDim]
	used [][][]int     // [layer][position], experts in rank order
	grow []float64     // rms of the residual stream, the last token's, after each layer
	last []float64     // residual stream at the end
}

// step appends one token and returns its logits.
func (p *plain) step(st *state, id int) []float64 {
	if st.k == nil {
		st.k, st.v, st.used = make([][][]float64, p.Layers), make([][][]float64, p.Layers), make([][][]int, p.Layers)
	}
	x := make([]float64, p.Embd)
	for i := range x {
		x[i] = float64(p.w["token_embd.weight"][id*p.Embd+i])
	}
	st.grow = st.grow[:0]
	for l := range p.Layers {
		w := func(name string) []float32 { return p.w["blk."+strconv.Itoa(l)+"."+name+".weight"] }
		y := norm(w("attn_norm"), x)
		add(x, rows(w("attn_output"), p.attention(st, l, y, w)), 1)
		y = norm(w("ffn_norm"), x)
		add(x, p.experts(st, l, y, w), 1)
		st.grow = append(st.grow, rms(x))
	}
	st.last = x
	head := p.w["output.weight"]
	if p.Tied {
		head = p.w["token_embd.weight"]
	}
	return rows(head, norm(p.w["output_norm.weight"], x))
}

func (p *plain) attention(st *state, l int, y []float64, w func(string) []float32) []float64 {
	pos, d := len(st.k[l]), p.HeadDim
	q, k := rows(w("attn_q"), y), rows(w("attn_k"), y)
	for h := range p.Heads {
		copy(q[h*d:], norm(w("attn_q_norm"), q[h*d:(h+1)*d]))
		rope(q[h*d:(h+1)*d], pos)
	}
	for h := range p.KVHeads {
		copy(k[h*d:], norm(w("attn_k_norm"), k[h*d:(h+1)*d]))
		rope(k[h*d:(h+1)*d], pos)
	}
	st.k[l], st.v[l] = append(st.k[l], k), append(st.v[l], rows(w("attn_v"), y))
	out := make([]float64, p.Heads*d)
	for h := range p.Heads {
		at := h / (p.Heads / p.KVHeads) * d
		score := make([]float64, pos+1)
		for t := range score {
			for i := range d {
				score[t] += q[h*d+i] * st.k[l][t][at+i] / math.Sqrt(float64(d))
			}
		}
		softmax(score)
		for t, s := range score {
			add(out[h*d:(h+1)*d], st.v[l][t][at:at+d], s)
		}
	}
	return out
}

func (p *plain) experts(st *state, l int, y []float64, w func(string) []float32) []float64 {
	prob := rows(w("ffn_gate_inp"), y)
	softmax(prob)
	ids := make([]int, p.Experts)
	for i := range ids {
		ids[i] = i
	}
	slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(prob[b], prob[a]) })
	ids = ids[:p.Used]
	st.used[l] = append(st.used[l], ids)
	sum := 0.0
	for _, e := range ids {
		sum += prob[e]
	}
	out, n := make([]float64, p.Embd), p.Embd*p.ExpertFF
	for _, e := range ids {
		g, u := rows(w("ffn_gate_exps")[e*n:(e+1)*n], y), rows(w("ffn_up_exps")[e*n:(e+1)*n], y)
		for i := range g {
			g[i] = g[i] / (1 + math.Exp(-g[i])) * u[i]
		}
		add(out, rows(w("ffn_down_exps")[e*n:(e+1)*n], g), prob[e]/sum)
	}
	return out
}

// Greedy text of a random model does not fall into a cycle, its activations
// keep their size, and its routing uses all experts without being flat.
func TestModelsDoNotDegenerate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Spec)
	}{
		{"head", func(*Spec) {}},
		{"tied head", func(s *Spec) { s.Tied = true }},
		{"quantised", func(s *Spec) { s.Type, s.Embd, s.Heads, s.ExpertFF = "Q4_K_M", 256, 8, 256 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Spec{Layers: 6, Embd: 128, Heads: 4, KVHeads: 2, HeadDim: 32, Experts: 32, Used: 4, ExpertFF: 64, Vocab: 600, Ctx: 256, Type: "F32", Seed: 5}
			c.change(&s)
			p, st := load(t, s), &state{}
			id, seen, repeats := 65, map[int]bool{}, 0
			const tokens = 60
			for range tokens {
				logits := p.step(st, id)
				if r := rms(logits); r < 1.5 || r > 6 {
					t.Errorf("logits of size %.2f", r)
				}
				next := slices.Index(logits, slices.Max(logits))
				if next == id {
					repeats++
				}
				id = next
				if id >= s.Vocab-controls {
					t.Errorf("control token %d", id)
				}
				seen[id] = true
			}
			if len(seen) < tokens/2 || repeats > 5 {
				t.Errorf("%d different tokens, %d repeats of the last one, among %d", len(seen), repeats, tokens)
			}
			for l := 1; l < s.Layers; l++ {
				if f := st.grow[l] / st.grow[l-1]; f < 0.8 || f > 2 {
					t.Errorf("layer %d takes the residual stream from %.2f to %.2f", l, st.grow[l-1], st.grow[l])
				}
			}
			if r := st.grow[s.Layers-1]; r < residualStd/2 || r > residualStd*2 {
				t.Errorf("the residual stream ends at %.2f", r)
			}
			p.checkRouting(t, st)
		})
	}
}

// checkRouting looks at which experts the tokens of a text were given.
func (p *plain) checkRouting(t *testing.T, st *state) {
	entropy, static, again := 0.0, 0.0, 0.0
	for l := range p.Layers {
		count := make([]int, p.Experts)
		for pos, ids := range st.used[l] {
			for _, e := range ids {
				count[e]++
				if pos > 0 && slices.Contains(st.used[l][pos-1], e) {
					again++
				}
			}
		}
		total := float64(len(st.used[l]) * p.Used)
		for _, n := range count {
			if n > 0 {
				entropy -= float64(n) / total * math.Log(float64(n)/total) / math.Log(float64(p.Experts)) / float64(p.Layers)
			}
		}
		slices.Sort(count)
		for _, n := range count[p.Experts-p.Used:] {
			static += float64(n) / total / float64(p.Layers)
		}
		if unused := slices.IndexFunc(count, func(n int) bool { return n > 0 }); unused > p.Experts/4 {
			t.Errorf("layer %d never uses %d of %d experts", l, unused, p.Experts)
		}
	}
	again /= float64(p.Layers * (len(st.used[0]) - 1) * p.Used)
	t.Logf("entropy %.3f of the possible, the %d hottest serve %.3f, %.3f were used by the token before", entropy, p.Used, static, again)
	if entropy < 0.85 || entropy > 0.995 || static < 0.15 || static > 0.6 {
		t.Errorf("routing: entropy %.3f of the possible, the %d hottest experts serve %.2f", entropy, p.Used, static)
	}
}
