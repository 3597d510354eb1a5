package gguftest

import "strings"

// OneExpert makes a model dense: the first expert of every layer is its feed-forward
// network.
func (m *Model) OneExpert() {
	var rest []Tensor
	for _, x := range m.Tensors {
		switch {
		case strings.Contains(x.Name, "_exps."):
			n := int(x.Dims[2])
			x.Name, x.Dims, x.Data = strings.Replace(x.Name, "_exps.", ".", 1), x.Dims[:2], x.Data[:len(x.Data)/n]
			rest = append(rest, x)
		case strings.Contains(x.Name, "ffn_gate_inp"), strings.Contains(x.Name, "exp_probs"), strings.Contains(x.Name, "_shexp"):
		default:
			rest = append(rest, x)
		}
	}
	m.Tensors = rest
	m.NoExperts()
}

// NoExperts takes the keys of experts away.
func (m *Model) NoExperts() {
	for key := range m.Keys {
		_, name, _ := strings.Cut(key, ".")
		if strings.HasPrefix(name, "expert_") || name == "leading_dense_block_count" {
			m.Set[key] = nil
		}
	}
}

// Rename gives a model another architecture, with the keys of the old one that are not
// to be left out.
func (m *Model) Rename(from, to string) {
	m.Set["general.architecture"] = to
	for key, x := range m.Keys {
		rest, ok := strings.CutPrefix(key, from+".")
		if !ok {
			continue
		}
		if _, out := m.Set[key]; !out {
			m.Set[to+"."+rest] = x
		}
		m.Set[key] = nil
	}
}
