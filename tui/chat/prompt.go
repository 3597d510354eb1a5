package chat

import (
	"strings"

	"bmoe/tui/term"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// Prompt is the box that messages are typed into, with the history of what was
// sent. What it shows is what is sent: text is cleaned however it comes, so that
// nothing can hide in it. The terminal draws the cursor, so that nothing has to
// blink while nothing happens.
type Prompt struct {
	box     textarea.Model
	history history
	hidden  int
}

// NewPrompt returns an empty box, which has the focus.
func NewPrompt() *Prompt {
	ta := textarea.New()
	ta.ShowLineNumbers = false
	ta.CharLimit = 0
	ta.DynamicHeight, ta.MinHeight, ta.MaxHeight, ta.MaxContentHeight = true, 1, 8, 10000
	plain := textarea.StyleState{Placeholder: lipgloss.NewStyle().Foreground(lipgloss.Color("#8A8A8A"))}
	ta.SetStyles(textarea.Styles{Focused: plain, Blurred: plain, Cursor: textarea.CursorStyle{Shape: tea.CursorBlock, Blink: true}})
	ta.SetVirtualCursor(false)
	ta.SetPromptFunc(2, func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return "> "
		}
		return "  "
	})
	// These keys have other meanings here.
	k := &ta.KeyMap
	k.InsertNewline.SetEnabled(false)
	k.TransposeCharacterBackward.SetEnabled(false)
	k.SelectAll.SetEnabled(false)
	k.PageUp.SetEnabled(false)
	k.PageDown.SetEnabled(false)
	k.InputBegin.SetKeys("alt+<")
	k.InputEnd.SetKeys("alt+>")
	k.LineNext.SetKeys("down")
	ta.Focus()
	return &Prompt{box: ta}
}

// Value is what the box holds.
func (p *Prompt) Value() string { return p.box.Value() }

// Height is how many rows the box takes.
func (p *Prompt) Height() int { return p.box.Height() }

// SetSize gives the box its width and the most rows that it may take.
func (p *Prompt) SetSize(w, most int) {
	p.box.MaxHeight = most
	p.box.SetWidth(w)
}

// SetPlaceholder sets what an empty box shows.
func (p *Prompt) SetPlaceholder(s string) { p.box.Placeholder = s }

// SetFocus says whether keys go to the box.
func (p *Prompt) SetFocus(on bool) {
	if on {
		p.box.Focus()
	} else {
		p.box.Blur()
	}
}

// Lines draws the box.
func (p *Prompt) Lines() []string { return strings.Split(p.box.View(), "\n") }

// Cursor is where the terminal's cursor belongs, within the box; nil: nowhere.
func (p *Prompt) Cursor() *tea.Cursor { return p.box.Cursor() }

// Update passes a message to the box.
func (p *Prompt) Update(msg tea.Msg) tea.Cmd {
	if k, ok := msg.(tea.KeyPressMsg); ok && k.Text != "" {
		if k.Text = p.clean(k.Text); k.Text == "" {
			return nil
		}
		msg = k
	}
	var cmd tea.Cmd
	p.box, cmd = p.box.Update(msg)
	if _, typed := msg.(tea.KeyPressMsg); !typed { // it may be the clipboard, which the box reads itself
		if text := p.box.Value(); term.Hidden(text) > 0 {
			p.box.SetValue(p.clean(text))
		}
	}
	return cmd
}

// Set puts a text in place of what is there.
func (p *Prompt) Set(text string) { p.box.SetValue(p.clean(text)) }

// Insert puts a text in at the cursor, whole: its lines are one message.
func (p *Prompt) Insert(text string) { p.box.InsertString(p.clean(text)) }

// Clear empties the box.
func (p *Prompt) Clear() { p.box.Reset() }

// Take empties the box and remembers what it held.
func (p *Prompt) Take() string {
	text := p.box.Value()
	p.history.add(text)
	p.box.Reset()
	return text
}

// Remember puts what was sent in earlier sessions before what was since.
func (p *Prompt) Remember(earlier []string) { p.history.remember(earlier) }

// Recall moves through what was sent, back (-1) or on (+1). It reports false where
// the key is the box's own, since the cursor can move inside it.
func (p *Prompt) Recall(dir int) bool {
	li := p.box.LineInfo()
	first := p.box.Line() == 0 && li.RowOffset == 0
	last := p.box.Line() == p.box.LineCount()-1 && li.RowOffset >= li.Height-1
	if dir < 0 && !first || dir > 0 && !last {
		return false
	}
	if s, ok := p.history.move(dir, p.box.Value()); ok {
		p.box.SetValue(s)
	}
	return true
}

// LeftOut returns how many characters that do not show were left out since it was
// last asked.
func (p *Prompt) LeftOut() int {
	n := p.hidden
	p.hidden = 0
	return n
}

func (p *Prompt) clean(text string) string {
	p.hidden += term.Hidden(text)
	return term.Clean(text)
}
