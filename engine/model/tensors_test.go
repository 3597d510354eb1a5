package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/gguf"
	"bmoe/engine/gguf/gguftest"
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
	"bmoe/engine/quant"
	"bmoe/internal/conform"
)

// The tests here give one model in several forms. Its three layers have four
// heads over two of keys and values, and eight experts.
const (
	formLayers  = 3
	formExperts = 8
)

var formPrompt = []int32{5, 9, 20, 31, 300, 7}

// logitsOf evaluates the prompt.
func logitsOf(t *testing.T, path string, num kernel.Numerics) []float32 {
	t.Helper()
	return load(t, path, num, 2, 32).eval(t, formPrompt, 32, attn.KVF32)
}

// refusal returns what Build has to say about a model that it must refuse.
func refusal(t *testing.T, path string) string {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Build(f, 0)
	if err == nil {
		t.Fatal("the model is not refused")
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("not one line: %v", err)
	}
	return err.Error()
}

// join puts tensors of one row length one upon the other: dims beyond the second
// are theirs, and joined for each of them.
func join(name string, xs ...gguftest.Tensor) gguftest.Tensor {
	j := gguftest.Tensor{Name: name, Type: xs[0].Type, Dims: slices.Clone(xs[0].Dims)}
	outer := int64(1)
	for _, d := range j.Dims[min(2, len(j.Dims)):] {
		outer *= d
	}
	at := min(1, len(j.Dims)-1)
	j.Dims[at] = 0
	for _, x := range xs {
		j.Dims[at] += x.Dims[at]
	}
	for o := range int(outer) {
		for _, x := range xs {
			each := len(x.Data) / int(outer)
			j.Data = append(j.Data, x.Data[o*each:][:each]...)
		}
	}
	return j
}

// scaled returns an F16 tensor times powers of two, one for each of its outermost
// parts.
func scaled(t *testing.T, x gguftest.Tensor, by []float32) gguftest.Tensor {
	t.Helper()
	if x.Type != quant.F16 {
		t.Fatalf("%s is %v", x.Name, x.Type)
	}
	f := make([]float32, len(x.Data)/2)
	if err := quant.Dequantize(x.Type, f, x.Data); err != nil {
		t.Fatal(err)
	}
	for i := range f {
		f[i] *= by[i/(len(f)/len(by))]
	}
	if err := quant.Quantize(x.Type, x.Data, f); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestFusedTensorsAreTheSameModel(t *testing.T) {
	plain := conform.File(t, "models/qwen3moe.gguf")
	biases := func(m *gguftest.Model, of string, n int) gguftest.Tensor {
		b := make([]float32, n)
		for i := range b {
			b[i] = float32(math.Sin(float64(i*len(of)+i*i))) / 2
		}
		return gguftest.F32(of+".bias", b, int64(n))
	}
	fuse := func(m *gguftest.Model, to string, parts ...string) {
		for i := range formLayers {
			for _, ending := range []string{"weight", "bias"} {
				var xs []gguftest.Tensor
				for _, p := range parts {
					name := fmt.Sprintf("blk.%d.%s.%s", i, p, ending)
					if slices.ContainsFunc(m.Tensors, func(x gguftest.Tensor) bool { return x.Name == name }) {
						xs = append(xs, m.Take(t, name))
					}
				}
				if len(xs) > 0 {
					m.Add(join(fmt.Sprintf("blk.%d.%s.%s", i, to, ending), xs...))
				}
			}
		}
	}
	withBiases := func(m *gguftest.Model) {
		for i := range formLayers {
			for p, n := range map[string]int{"attn_q": 4 * 32, "attn_k": 2 * 32, "attn_v": 2 * 32} {
				m.Add(biases(m, fmt.Sprintf("blk.%d.%s", i, p), n))
			}
		}
	}
	biased := gguftest.Rewrite(t, plain, withBiases)
	for _, num := range []kernel.Numerics{kernel.Fast, kernel.Exact} {
		want, wantBiased := logitsOf(t, plain, num), logitsOf(t, biased, num)
		if slices.Equal(want, wantBiased) {
			t.Error("biases of q, k and v change nothing")
		}
		for _, c := range []struct {
			name string
			want []float32
			edit func(m *gguftest.Model)
		}{
			{"qkv", want, func(m *gguftest.Model) { fuse(m, "attn_qkv", "attn_q", "attn_k", "attn_v") }},
			{"qkv with biases", wantBiased, func(m *gguftest.Model) {
				withBiases(m)
				fuse(m, "attn_qkv", "attn_q", "attn_k", "attn_v")
			}},
			{"gate_up", want, func(m *gguftest.Model) { fuse(m, "ffn_gate_up_exps", "ffn_gate_exps", "ffn_up_exps") }},
			{"both", want, func(m *gguftest.Model) {
				fuse(m, "attn_qkv", "attn_q", "attn_k", "attn_v")
				fuse(m, "ffn_gate_up_exps", "ffn_gate_exps", "ffn_up_exps")
			}},
			{"heads as arrays", want, func(m *gguftest.Model) {
				m.Set["qwen3moe.attention.head_count"] = []int32{4, 4, 4}
				m.Set["qwen3moe.attention.head_count_kv"] = []uint32{2, 2, 2}
			}},
		} {
			if got := logitsOf(t, gguftest.Rewrite(t, plain, c.edit), num); !slices.Equal(got, c.want) {
				t.Errorf("%s, numerics %d: other logits", c.name, num)
			}
		}
	}
}

// A scale of 2 is the same as doubled weights, bit for bit, whichever matrix it
// belongs to and whether it is one for all experts or one for each.
func TestScalesApply(t *testing.T) {
	plain := conform.File(t, "models/qwen3moe.gguf")
	each := []float32{1, 2, 8, 4, 2, 1, 4, 2} // up only: half the smallest number would be rounded
	for _, c := range []struct {
		tensor string
		scale  []float32
	}{
		{"ffn_up_exps", each}, {"ffn_gate_exps", each}, {"ffn_down_exps", each}, {"ffn_up_exps", []float32{2}},
		{"attn_v", []float32{2}}, {"attn_output", []float32{2}}, {"ffn_gate_inp", []float32{2}},
	} {
		t.Run(fmt.Sprint(c.tensor, len(c.scale)), func(t *testing.T) {
			name := func(i int, ending string) string { return fmt.Sprintf("blk.%d.%s.%s", i, c.tensor, ending) }
			doubled := gguftest.Rewrite(t, plain, func(m *gguftest.Model) {
				for i := range formLayers {
					x := m.Take(t, name(i, "weight"))
					if x.Type == quant.F32 { // the router
						f := make([]float32, len(x.Data)/4)
						if err := quant.Dequantize(x.Type, f, x.Data); err != nil {
							t.Fatal(err)
						}
						vec.Scale(f, c.scale[0])
						m.Add(gguftest.F32(x.Name, f, x.Dims...))
						continue
					}
					m.Add(scaled(t, x, c.scale))
				}
			})
			withScale := gguftest.Rewrite(t, plain, func(m *gguftest.Model) {
				for i := range formLayers {
					m.Add(gguftest.F32(name(i, "scale"), c.scale, int64(len(c.scale))))
				}
			})
			want, got := logitsOf(t, doubled, kernel.Exact), logitsOf(t, withScale, kernel.Exact)
			if slices.Equal(want, logitsOf(t, plain, kernel.Exact)) {
				t.Fatal("doubling the weights changes nothing")
			}
			if !slices.Equal(got, want) {
				t.Error("other logits than those of the scaled weights")
			}
		})
	}
}

func TestTensorsThatWouldBeLeftOut(t *testing.T) {
	plain := conform.File(t, "models/qwen3moe.gguf")
	some := make([]float32, 64)
	for _, name := range []string{"blk.1.ffn_norm.bias", "blk.0.attn_sinks.weight", "blk.2.post_attention_norm.weight", "blk.0.exp_probs_b.bias",
		"output_norm.bias", "rope_freqs.weight", "blk.1.ffn_up_shexp.weight"} {
		path := gguftest.Rewrite(t, plain, func(m *gguftest.Model) { m.Add(gguftest.F32(name, some, 64)) })
		if msg := refusal(t, path); !strings.Contains(msg, name) {
			t.Errorf("%s: refused with %q", name, msg)
		}
	}
	path := gguftest.Rewrite(t, plain, func(m *gguftest.Model) {
		for _, name := range []string{"blk.3.nextn.eh_proj.weight", "v.patch_embd.weight", "mtp.head.weight"} {
			m.Add(gguftest.F32(name, some, 64))
		}
		m.Add(gguftest.F32("blk.0.attn_q.input_scale", some[:1], 1))
	})
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, reg, err := Build(f, 0); err != nil || reg.Unused != 3 {
		t.Errorf("tensors outside: %v, %+v", err, reg)
	}
	for _, c := range []struct {
		says string
		edit func(*gguftest.Model)
	}{
		{"ffn_up_exps.scale has shape [3]", func(m *gguftest.Model) { m.Add(gguftest.F32("blk.0.ffn_up_exps.scale", some[:3], 3)) }},
		{"attn_q.bias has shape [64]", func(m *gguftest.Model) { m.Add(gguftest.F32("blk.0.attn_q.bias", some, 64)) }},
		{"head_count_kv is 1 in layer 2", func(m *gguftest.Model) { m.Set["qwen3moe.attention.head_count_kv"] = []int32{2, 2, 1} }},
		{"has 2 elements for 3 layers", func(m *gguftest.Model) { m.Set["qwen3moe.attention.head_count_kv"] = []int32{2, 2} }},
		{"only", func(m *gguftest.Model) { m.Set["qwen3moe.block_count"] = uint32(1 << 24) }},
		{"both", func(m *gguftest.Model) {
			m.Add(join("blk.0.attn_qkv.weight", m.Take(t, "blk.0.attn_q.weight"), m.Take(t, "blk.0.attn_k.weight"), m.Tensors[slices.IndexFunc(m.Tensors,
				func(x gguftest.Tensor) bool { return x.Name == "blk.0.attn_v.weight" })]))
		}},
	} {
		if msg := refusal(t, gguftest.Rewrite(t, plain, c.edit)); !strings.Contains(msg, c.says) {
			t.Errorf("refused with %q, which does not say %q", msg, c.says)
		}
	}
}

// A file that has experts and says that it has none contradicts itself.
func TestExpertsThatAreNotCounted(t *testing.T) {
	for _, name := range landed {
		file := "conformance/models/" + name + ".gguf"
		f, err := gguf.Open(conform.Shared(t, file))
		if err != nil {
			t.Fatal(err)
		}
		arch, err := f.Meta.String("general.architecture")
		if err != nil {
			t.Fatal(err)
		}
		path := gguftest.Rewrite(t, conform.Shared(t, file), func(m *gguftest.Model) { m.Set[arch+".expert_count"] = uint32(0) })
		if got := refusal(t, path); !strings.Contains(got, "expert_count") && !strings.Contains(got, "tensor blk.") && !strings.Contains(got, "feed_forward_length") {
			t.Errorf("%s is refused with %q, which names no key or tensor", name, got)
		}
	}
}
