package view

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"bmoe/engine/backend"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// Models is the list of models that could be opened, and the one that could be
// downloaded. It asks for what it cannot do itself.
type Models struct {
	th    *term.Theme
	shelf backend.Shelf
	known bool   // the places have been looked at
	busy  string // what goes on meanwhile
	none  string // why there is no list
	open  string // the ID of the model that is open
	next  string // the ID of a model to pick as soon as the list has it

	filter     string
	sort       modelOrder
	at, top, h int

	factsOf string // the ID that the facts are of
	facts   []backend.Fact
	untold  string // why there are none

	offer   *backend.Offer
	refused string            // why there is no offer, or no download
	asking  string            // the name that is being looked up
	down    *backend.Download // under way
	coming  bool              // a download is, though nothing is known of it yet

	asked *ModelWish
}

// ModelDeed is what the list of models asks for.
type ModelDeed uint8

// The deeds.
const (
	OpenModel ModelDeed = iota
	LookUp              // a model of the hub
	BringIt             // what the hub offers
	StopIt              // looking up, or the download
)

// ModelWish is a deed, and what it is about.
type ModelWish struct {
	Do ModelDeed
	ID string // of the model
	// Name is the model's, OWNER/REPO or OWNER/REPO:QUANT where it is one of the hub.
	Name  string
	Offer *backend.Offer
}

// modelOrder is what the list is sorted by.
type modelOrder int

const (
	asFound modelOrder = iota
	byName
	bySize
	byActive
	bySpeed
	modelOrders
)

var orderNames = [modelOrders]string{"as found", "by name", "by size", "by what a token reads", "by speed"}

// hubName is what names a model of the hub.
var hubName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(:[\w.-]+)?$`)

// NewModels returns a list of which nothing is known yet.
func NewModels(th *term.Theme) *Models { return &Models{th: th} }

// Begin forgets what was typed, and says which model is open and what goes on.
func (l *Models) Begin(open, busy string) {
	l.open, l.busy, l.none = open, busy, ""
	l.filter, l.at, l.top = "", 0, 0
	l.offer, l.refused, l.factsOf = nil, "", ""
	for i, row := range l.rows() {
		if row.ID == open {
			l.at = i
		}
	}
}

// Set takes what was found. The picked model stays so; at first it is the open one.
func (l *Models) Set(s backend.Shelf, busy string) {
	id := l.open
	if m := l.picked(); m != nil && l.known {
		id = m.ID
	}
	if l.next != "" && slices.ContainsFunc(s.Models, func(m backend.Model) bool { return m.ID == l.next }) {
		id, l.next = l.next, ""
	}
	l.shelf, l.known, l.busy = s, true, busy
	l.pick(id)
}

// Fail says why there is no list, or no more of it.
func (l *Models) Fail(why string) { l.known, l.busy, l.none = true, "", why }

// pick picks a model by its ID.
func (l *Models) pick(id string) {
	rows := l.rows()
	l.at = min(l.at, max(len(rows)-1, 0))
	for i, m := range rows {
		if m.ID == id {
			l.at = i
		}
	}
}

// Wants is the ID of the picked model while its facts have not been asked for, else empty.
func (l *Models) Wants() string {
	m := l.picked()
	if m == nil || m.ID == l.factsOf || m.Why != "" {
		return ""
	}
	l.factsOf, l.facts, l.untold = m.ID, nil, ""
	return m.ID
}

// Tell takes a model's facts, or why there are none.
func (l *Models) Tell(id string, facts []backend.Fact, why string) {
	if id == l.factsOf {
		l.facts, l.untold = facts, why
	}
}

// Offered takes what the hub offers, or why it does not.
func (l *Models) Offered(name string, o *backend.Offer, why string) {
	if l.asking == name {
		l.asking, l.offer, l.refused = "", o, why
	}
}

// Coming takes how far a download is.
func (l *Models) Coming(d backend.Download) {
	if l.coming {
		l.down = &d
	}
}

// Came ends a download: with the ID of the model, or why it is not there.
func (l *Models) Came(id, why string) {
	l.down, l.coming, l.refused = nil, false, why
	if why == "" {
		l.filter, l.offer = "", nil
		l.pick(id)
		if m := l.picked(); m == nil || m.ID != id {
			l.next = id
		}
	}
}

// Downloading reports whether a download is under way.
func (l *Models) Downloading() bool { return l.coming }

// Asked returns what was asked for since the last call.
func (l *Models) Asked() (ModelWish, bool) {
	w := l.asked
	if l.asked = nil; w == nil {
		return ModelWish{}, false
	}
	return *w, true
}

// rows are the models that the filter leaves, in their order.
func (l *Models) rows() (out []*backend.Model) {
	words := strings.Fields(strings.ToLower(l.filter))
	for i := range l.shelf.Models {
		m := &l.shelf.Models[i]
		text := strings.ToLower(m.Name + " " + m.Arch + " " + m.Quant + " " + m.Place)
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b *backend.Model) int {
		switch l.sort {
		case byName:
			return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
		case bySize:
			return cmpDown(float64(a.Bytes), float64(b.Bytes))
		case byActive:
			return -cmpDown(float64(a.Active), float64(b.Active))
		case bySpeed:
			return cmpDown(rank(a.Most), rank(b.Most))
		}
		return 0
	})
	return out
}

// rank puts what is not measured last.
func rank(v profile.Maybe[float64]) float64 {
	if !v.OK {
		return -1
	}
	return v.Value
}

func cmpDown(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// hub is the name that was typed, if it may be one of a model of the hub.
func (l *Models) hub() string {
	if name := strings.TrimSpace(l.filter); hubName.MatchString(name) {
		return name
	}
	return ""
}

// count is how many rows there are, with that of the hub.
func (l *Models) count() int {
	n := len(l.rows())
	if l.hub() != "" {
		n++
	}
	return n
}

// picked is the picked model; nil: none, or that of the hub.
func (l *Models) picked() *backend.Model {
	if rows := l.rows(); l.at < len(rows) {
		return rows[l.at]
	}
	return nil
}

func (l *Models) move(n int) { l.at = min(max(l.at+n, 0), max(l.count()-1, 0)) }

func (l *Models) page() int { return max(l.h-2-l.detailRows(), 1) }

// Wheel implements View.
func (l *Models) Wheel(dir int) { l.move(dir) }

// Figures implements View.
func (l *Models) Figures() Figures { return None }

// Title implements View.
func (l *Models) Title(int) string {
	text := l.th.Title.On("models")
	if l.known {
		text += "  " + l.th.Dim.On(units.Plural(int64(len(l.shelf.Models)), "model")+" here, "+orderNames[l.sort])
	}
	return text
}

// Hints implements View.
func (l *Models) Hints() []string {
	esc := "Esc closes"
	enter := "Enter changes to it"
	if m := l.picked(); m != nil && m.ID == l.open {
		enter = "this one is open"
	}
	switch {
	case l.coming:
		esc = "Esc stops the download"
	case l.asking != "":
		esc = "Esc stops asking"
	case l.filter != "":
		esc = "Esc clears the filter"
	}
	if l.picked() == nil && l.hub() != "" {
		enter = "Enter asks the hub, and tells before the first byte"
		if l.offer != nil && l.offer.Name == l.hub() {
			enter = "Enter downloads it"
		}
	}
	if l.coming {
		return []string{esc, "the list stays in use"}
	}
	return []string{enter, esc, "type to filter, or OWNER/REPO[:QUANT] of the hub", "Left/Right sorts"}
}

// Key types the filter, picks a model and asks for it.
func (l *Models) Key(name string) bool {
	switch name {
	case "up":
		l.move(-1)
	case "down":
		l.move(+1)
	case "pgup":
		l.move(-l.page())
	case "pgdown":
		l.move(+l.page())
	case "home":
		l.move(-l.count())
	case "end":
		l.move(+l.count())
	case "left", "right":
		step := modelOrder(1)
		if name == "left" {
			step = modelOrders - 1
		}
		id := ""
		if m := l.picked(); m != nil {
			id = m.ID
		}
		l.sort = (l.sort + step) % modelOrders
		l.pick(id)
	case "enter":
		l.enter()
	case "esc":
		return l.escape()
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(l.filter)
		l.retype(l.filter[:len(l.filter)-n])
	case "ctrl+u":
		l.retype("")
	case "space":
		l.retype(l.filter + " ")
	default:
		if utf8.RuneCountInString(name) != 1 || term.Hidden(name) != 0 {
			return false
		}
		l.retype(l.filter + name)
	}
	return true
}

// Paste types a text.
func (l *Models) Paste(text string) { l.retype(l.filter + term.CleanLine(text)) }

// retype makes a text the filter. The picked row stays if it is left.
func (l *Models) retype(text string) {
	id := ""
	if m := l.picked(); m != nil {
		id = m.ID
	}
	l.filter, l.at, l.top, l.refused = text, 0, 0, ""
	l.pick(id)
}

func (l *Models) enter() {
	m, name := l.picked(), l.hub()
	switch {
	case m != nil && m.ID != l.open && m.Why == "":
		l.asked = &ModelWish{Do: OpenModel, ID: m.ID, Name: m.Name}
	case m != nil || name == "" || l.coming:
	case l.offer == nil || l.offer.Name != name:
		l.asking, l.offer, l.refused = name, nil, ""
		l.asked = &ModelWish{Do: LookUp, Name: name}
	case l.offer.ID != "":
		l.asked = &ModelWish{Do: OpenModel, ID: l.offer.ID, Name: name}
	default:
		l.coming, l.refused = true, ""
		l.asked = &ModelWish{Do: BringIt, Name: name, Offer: l.offer}
	}
}

// escape stops what goes on, else clears the filter; false: there is neither.
func (l *Models) escape() bool {
	switch {
	case l.coming || l.asking != "":
		l.asking = ""
		l.asked = &ModelWish{Do: StopIt}
	case l.filter != "":
		l.retype("")
	default:
		return false
	}
	return true
}

// speed words the estimate of a model.
func speed(m *backend.Model) string {
	switch {
	case m.Why != "":
		return "cannot be run"
	case m.Far:
		return "-"
	}
	least, most := m.Least.Text(units.Short, ""), m.Most.Text(units.Short, "")
	if least == most {
		return least
	}
	return least + " to " + most
}

// ofMemory is a model's size against the machine's memory.
func (l *Models) ofMemory(m *backend.Model) string {
	if m.Bytes == 0 || l.shelf.Memory == 0 {
		return "-"
	}
	share := float64(m.Bytes) / float64(l.shelf.Memory)
	if share < 0.01 {
		return "< 1 %"
	}
	return units.Share(share)
}

// needs is what a model's experts and a token of it are, in columns.
func needs(m *backend.Model) (experts, active string) {
	experts, active = "no", "-"
	switch {
	case m.Far || m.Why != "":
		return "-", "-"
	case m.Experts > 0:
		experts = units.Decimals(float64(m.Used), 0) + "/" + units.Decimals(float64(m.Experts), 0)
	}
	if m.Active > 0 {
		active = units.Sig(units.InMiB(m.Active))
	}
	return experts, active
}

// Typing implements Typist.
func (l *Models) Typing() bool { return true }
