package tui

import (
	"slices"
	"strconv"
	"strings"

	"bmoe/engine/backend"
	"bmoe/tui/pane"
	"bmoe/tui/view"
)

// action is something the user can ask for, by key or by command.
type action uint8

const (
	actNone     action = iota
	actOpen            // a view, or close it
	actStepDown        // of a setting
	actStepUp
	actAgain
	actNewChat
	actSave
	actFold
	actSwitch
	actStop
	actQuit
	actCtrlC
	actCtrlD
	actSuspend
	actRepaint
	actLeave
	actFreeze
	actEarlier
	actLater
	actCopy
	actFind
	actSlowest
	actZoomOut
	actZoomIn
	actZoomAll
	actExpand
	actPick     // a pane
	actPickNext // the pane below, or the first
	actWhy
	actPickUp
	actPickDown
	actPageUp
	actPageDown
	actTop
	actBottom
	actChatTop
	actChatBottom
	actSend
	actNewline
	actHistoryUp
	actHistoryDown
)

// bind is a key, as the terminal library names it, and what it asks for, of a
// setting, a view or a pane if its row in the table is about one.
type bind struct {
	key     string
	act     action
	setting string
	view    string
	pane    int
}

// keyRow is a line of the help: keys that belong together, their twins, the
// command, and what they do. The same table makes the footer and dispatches
// the keys, so the three cannot disagree.
type keyRow struct {
	label   string // in the footer; empty: not there
	rank    int    // in the footer, the highest goes first when room is short
	setting string // the keys change it; its value is shown beside the label
	view    string // the keys open and close it
	any     []bind // work anywhere
	panes   []bind // work with the panes focused, and in the full-screen views
	chat    []bind // work in the prompt
	cmd     string // command of the prompt; a setting's is its own
	screen  bool   // the command is of the screen: the chat without one has no use for it
	help    string // empty: the setting's own
}

var keyTable = slices.Concat(viewKeys(view.Kinds[:1]), settingKeys, viewKeys(view.Kinds[1:]), otherKeys)

// viewKeys are the keys that open views.
func viewKeys(kinds []view.Kind) (rows []keyRow) {
	for _, k := range kinds {
		row := keyRow{view: k.Name, cmd: "/" + k.Name, screen: k.Screen, help: k.Help}
		if k.Key != "" {
			row.label, row.rank, row.any = k.Name, k.Rank, []bind{{key: k.Key, act: actOpen}}
		}
		if k.Twin != "" {
			row.panes = []bind{{key: k.Twin, act: actOpen}}
		}
		rows = append(rows, row)
	}
	return rows
}

// settingKeys change settings.
var settingKeys = []keyRow{
	{label: "release-mmap", setting: "release-mmap", any: []bind{{key: "f2", act: actStepUp}}, panes: []bind{{key: "m", act: actStepUp}},
		help: "hand the model file's mapping back to the system"},
	{label: "lanes", setting: "lanes", any: []bind{{key: "f3", act: actStepDown}, {key: "f4", act: actStepUp}},
		panes: []bind{{key: "[", act: actStepDown}, {key: "]", act: actStepUp}},
		help:  "fewer or more readers: 1, 2, 4, 8"},
	{label: "cache", setting: "cache", any: []bind{{key: "f5", act: actStepDown}, {key: "f6", act: actStepUp}},
		panes: []bind{{key: "-", act: actStepDown}, {key: "+", act: actStepUp}, {key: "=", act: actStepUp}},
		help:  "smaller or bigger cache budget, an eighth of all experts a step"},
	{label: "overlap", setting: "overlap", any: []bind{{key: "f7", act: actStepUp}}, panes: []bind{{key: "o", act: actStepUp}},
		help: "compute while reads are in flight"},
}

// otherKeys are the rest.
var otherKeys = []keyRow{
	{cmd: "/why", help: "why the last run was slow; /why N: what its N-th token waited for"},
	{label: "again", rank: 1, any: []bind{{key: "ctrl+g", act: actAgain}}, panes: []bind{{key: "g", act: actAgain}}, cmd: "/again",
		help: "repeat the last prompt from the same start, cache emptied"},
	{label: "new chat", rank: 4, any: []bind{{key: "ctrl+n", act: actNewChat}}, cmd: "/new",
		help: "begin a new conversation"},
	{any: []bind{{key: "ctrl+s", act: actSave}}, cmd: "/save [NAME]",
		help: "keep the conversation now; it is kept when the program ends, too"},
	{cmd: "/resume [NAME]", help: "go on with a conversation that was kept: the last one, or by its name"},
	{cmd: "/record FILE", help: "write the session down from now on, for bmoe --play"},
	{cmd: "/export FILE", help: "write the chat and its runs as Markdown; FILE.csv: the runs as a table"},
	{cmd: "/note TEXT", help: "a line on the latest run, kept with the session"},
	{label: "thoughts", rank: 6, any: []bind{{key: "ctrl+t", act: actFold}}, panes: []bind{{key: "t", act: actFold}}, cmd: "/thoughts", screen: true,
		help: "fold or unfold the reasoning"},
	{label: "freeze", rank: 3, panes: []bind{{key: "space", act: actFreeze}}, cmd: "/freeze", screen: true,
		help: "hold the panes still; recording goes on"},
	{panes: []bind{{key: "left", act: actEarlier}, {key: "right", act: actLater}}, help: "hold the panes still and pick a token: back, on. PgUp and PgDn go by ten then, Home and End to the first and the last"},
	{panes: []bind{{key: "s", act: actSlowest}}, help: "hold the panes still at the slowest token of the run; again: at the next slowest"},
	{panes: []bind{{key: "z", act: actZoomOut}, {key: "Z", act: actZoomIn}}, help: "more tokens in a column, or fewer"},
	{panes: []bind{{key: "w", act: actZoomAll}}, help: "the whole run in the picture, and back to a token a column"},
	{label: "expand", rank: 3, panes: []bind{{key: "e", act: actExpand}, {key: "enter", act: actExpand}},
		help: "the picked pane over the whole screen, and back"},
	{label: "pane", rank: 3, panes: pickKeys(),
		help: "pick a pane"},
	{panes: []bind{{key: "up", act: actPickUp}, {key: "k", act: actPickUp}, {key: "down", act: actPickDown}, {key: "j", act: actPickDown}},
		help: "pick the pane above or below"},
	{label: "panes", rank: 2, any: []bind{{key: "tab", act: actSwitch}, {key: "shift+tab", act: actSwitch}},
		help: "from the prompt to the panes and back"},
	{label: "stop", rank: 2, any: []bind{{key: "esc", act: actStop}}, cmd: "/stop", screen: true,
		help: "close what is open, else stop the answer"},
	{label: "quit", rank: 2, any: []bind{{key: "ctrl+c", act: actCtrlC}}, chat: []bind{{key: "ctrl+d", act: actCtrlD}}, cmd: "/quit",
		help: "clear the draft, else end the program; once a run was made it asks: press it twice. ^D in an empty prompt too"},
	{panes: []bind{{key: "q", act: actLeave}},
		help: "leave the panes, or close what is open"},
	{any: []bind{{key: "ctrl+l", act: actRepaint}},
		help: "draw the whole screen anew, should something have spoilt it"},
	{any: []bind{{key: "ctrl+z", act: actSuspend}},
		help: "back to the shell for a while, where the system can"},

	{any: []bind{{key: "pgup", act: actPageUp}, {key: "pgdown", act: actPageDown}},
		help: "scroll the chat; so does the mouse wheel"},
	{any: []bind{{key: "ctrl+home", act: actChatTop}, {key: "ctrl+end", act: actChatBottom}}, panes: []bind{{key: "home", act: actTop}, {key: "end", act: actBottom}},
		help: "start or end of the chat; Home and End too while the prompt is empty"},
	{any: []bind{{key: "ctrl+f", act: actFind}}, cmd: "/find TEXT", screen: true,
		help: "search in the chat: Enter for the next place, Up for the one before, Tab for what that word cost"},
	{panes: []bind{{key: "y", act: actCopy}}, cmd: "/copy", screen: true, help: "copy the last answer, as the model wrote it"},
	{cmd: "/edit [TEXT]", help: "change the last message: what is sent then, or TEXT, takes its place"},
	{cmd: "/regenerate [same]", help: "answer the last message anew, with another seed or the same; the cache stays as it is"},
	{cmd: "/file PATH", help: "add a text file to the next message; /file off takes it back"},
	{cmd: "/markdown [on|off]", screen: true, help: "show the marks of Markdown in answers as what they mean, or as they were written"},
	{chat: []bind{{key: "enter", act: actSend}},
		help: "send the prompt"},
	{chat: []bind{{key: "alt+enter", act: actNewline}, {key: "shift+enter", act: actNewline}, {key: "ctrl+j", act: actNewline}},
		help: "a new line in the prompt; a paste keeps its lines"},
	{chat: []bind{{key: "up", act: actHistoryUp}, {key: "down", act: actHistoryDown}},
		help: "earlier and later prompts, at the prompt's first and last line"},
}

// pickKeys are the digits that pick panes.
func pickKeys() (keys []bind) {
	for i := range pane.Count() {
		keys = append(keys, bind{key: strconv.Itoa(i + 1), act: actPick, pane: i})
	}
	return keys
}

// paneCaps are these digits in words.
func paneCaps() string { return "1-" + strconv.Itoa(pane.Count()) }

// lookup finds what a key asks for among the keys that one column of the table
// holds.
func (m *Model) lookup(key string, column func(*keyRow) []bind) bind {
	for i := range m.table {
		for _, b := range column(&m.table[i]) {
			if b.key == key {
				b.setting, b.view = m.table[i].setting, m.table[i].view
				return b
			}
		}
	}
	return bind{}
}

// cap is the name of the first key that asks for something anywhere, else of the command.
func (m *Model) cap(act action) string {
	for i := range m.table {
		for _, b := range m.table[i].any {
			if b.act == act {
				return caps([]bind{b}, "")
			}
		}
	}
	return "its command"
}

func anyKeys(r *keyRow) []bind  { return r.any }
func paneKeys(r *keyRow) []bind { return r.panes }
func chatKeys(r *keyRow) []bind { return r.chat }

// keyNames are the names on the caps.
var keyNames = map[string]string{
	"ctrl+home": "^Home", "ctrl+end": "^End", "alt+enter": "Alt+Enter", "shift+enter": "Shift+Enter",
	"tab": "Tab", "shift+tab": "Shift+Tab", "esc": "Esc", "space": "Space", "left": "Left", "right": "Right", "enter": "Enter",
	"up": "Up", "down": "Down", "pgup": "PgUp", "pgdown": "PgDn", "home": "Home", "end": "End",
}

// caps joins the names of keys.
func caps(bs []bind, sep string) string {
	s := ""
	for i, b := range bs {
		name := keyNames[b.key]
		if letter, ok := strings.CutPrefix(b.key, "ctrl+"); ok && len(letter) == 1 {
			name = "^" + strings.ToUpper(letter)
		}
		if name == "" {
			name = b.key
		}
		if len(name) > 1 && name[0] == 'f' { // the function keys
			name = strings.ToUpper(name)
		}
		if i > 0 {
			s += sep
		}
		s += name
	}
	return s
}

// sayKeys puts the settings that a text mentions in the words of the screen: a
// switch by its key, anything else by its command.
func (m *Model) sayKeys(text string) string {
	return backend.Mention(text, m.settings, func(s *backend.Setting, value string) string {
		if s.Kind == backend.Switch && s.Live {
			for i := range m.table {
				if r := &m.table[i]; r.setting == s.Name && len(r.any) > 0 {
					return caps(r.any[:1], "")
				}
			}
		}
		return backend.AsCommand(s, value)
	})
}

// helpLines are the lines of the help: every key and command.
func (m *Model) helpLines() []view.HelpLine {
	var lines []view.HelpLine
	keyed := map[string]bool{}
	for i := range m.table {
		r := &m.table[i]
		l := view.HelpLine{Keys: caps(slices.Concat(r.any, r.chat), " "), Twins: caps(r.panes, " "), Command: r.cmd, Text: r.help}
		if r.label == "pane" {
			l.Twins = paneCaps()
		}
		if s := backend.Find(m.settings, r.setting); s != nil {
			l.Command = usage(m.settings, s)
			keyed[s.Name] = true
		}
		lines = append(lines, l)
	}
	for _, k := range view.Kinds {
		lines = append(lines, k.Own...)
	}
	for i := range m.settings {
		if s := &m.settings[i]; s.Live && !keyed[s.Name] { // a command is all it has
			lines = append(lines, view.HelpLine{Command: usage(m.settings, s), Text: backend.Mention(s.Help, m.settings, backend.AsCommand), Wide: true})
		}
	}
	return lines
}
