package chat

import (
	"cmp"
	"slices"
	"strings"
)

// pick is the token that is picked.
type pick struct {
	place
	followed bool // the transcript followed its end before
}

// Pick shows where a run said its step-th token, and returns the text of that. It
// reports false where that is not known, as in a chat that was taken up again.
func (t *Transcript) Pick(run, step int) (text string, ok bool) {
	followed := t.follow
	if t.pick.block != nil {
		followed = t.pick.followed
	}
	t.pick = pick{}
	for i := len(t.blocks) - 1; i >= 0; i-- {
		b := t.blocks[i]
		if b.Run != run || b.Kind != FromModel {
			continue
		}
		p, ok := b.said(step)
		if !ok {
			return "", false
		}
		t.pick = pick{p, followed}
		t.reveal(i, p)
		return b.source(p.thought)[p.start:p.end], true
	}
	return "", false
}

// Unpick lets go of the token. A transcript that followed its end does so again.
func (t *Transcript) Unpick() {
	if t.pick.block != nil && t.pick.followed {
		t.ToEnd()
	}
	t.pick = pick{}
}

// said returns the place of a step's text.
func (b *Block) said(step int) (place, bool) {
	i, found := slices.BinarySearchFunc(b.tokens, int32(step), func(k token, step int32) int { return cmp.Compare(k.step, step) })
	if !found {
		return place{}, false
	}
	var before token
	if i > 0 {
		before = b.tokens[i-1]
	}
	k := b.tokens[i]
	if k.text == before.text && k.reason > before.reason {
		return place{b, true, int(before.reason), int(k.reason)}, true
	}
	return place{b, false, int(before.text), int(k.text)}, true
}

// token returns which token said a place.
func (p place) token() (run, step int, ok bool) {
	b := p.block
	if b == nil || b.Run == 0 {
		return 0, 0, false
	}
	i := slices.IndexFunc(b.tokens, func(k token) bool {
		if p.thought {
			return int(k.reason) > p.start
		}
		return int(k.text) > p.start
	})
	if i < 0 {
		return 0, 0, false
	}
	return b.Run, int(b.tokens[i].step), true
}

// TokenAt returns the token that said what is drawn at a place of the screen.
func (t *Transcript) TokenAt(x, y int) (run, step int, ok bool) {
	if y < 0 || y >= t.h {
		return 0, 0, false
	}
	i, row := t.blockAt(t.top() + y)
	if i >= len(t.blocks) || t.blocks[i].Kind != FromModel {
		return 0, 0, false
	}
	b := t.blocks[i]
	p := place{block: b, thought: true}
	d := &b.reasonDoc
	row--
	if n := len(t.thoughts(b)); row >= n {
		p.thought, d, row = false, &b.textDoc, row-n
	} else {
		x -= 2
	}
	if row < 0 || row >= len(d.rows) || x < 0 {
		return 0, 0, false
	}
	if p.start, ok = d.at(b.source(p.thought), row, x, t.th.Method); !ok {
		return 0, 0, false
	}
	return p.token()
}

// LastAnswer returns what the model said last, as it said it.
func (t *Transcript) LastAnswer() (text string, ok bool) {
	for i := len(t.blocks) - 1; i >= 0; i-- {
		if b := t.blocks[i]; b.Kind == FromModel && strings.TrimSpace(b.Text()) != "" {
			return b.Text(), true
		}
	}
	return "", false
}
