package tui

import "bmoe/engine/backend"

// action is something the user can ask for, by key or by command.
type action uint8

const (
	actNone action = iota
	actHelp
	actStepDown // of a setting
	actStepUp
	actRuns
	actAgain
	actNewChat
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
	actExpand
	actPick1
	actPick2
	actPick3
	actPick4
	actPick5
	actPick6
	actWhy
	actPickUp
	actPickDown
	actPageUp
	actPageDown
	actTop
	actBottom
	actSend
	actNewline
	actHistoryUp
	actHistoryDown
	actRunUp
	actRunDown
	actBaseline
)

// bind is a key, as the terminal library names it, and what it asks for, of a
// setting if its row in the table is about one.
type bind struct {
	key     string
	act     action
	setting string
}

// keyRow is a line of the help: keys that belong together, their twins, the
// command, and what they do. The same table makes the footer and dispatches
// the keys, so the three cannot disagree.
type keyRow struct {
	label   string // in the footer; empty: not there
	rank    int    // in the footer, the highest goes first when room is short
	setting string // the keys change it; its value is shown beside the label
	any     []bind // work anywhere
	panes   []bind // work with the panes focused, and in the full-screen views
	chat    []bind // work in the prompt
	runs    []bind // work in the list of runs
	cmd     string // command of the prompt; a setting's is its own
	help    string // empty: the setting's own
}

var keyTable = []keyRow{
	{label: "help", any: []bind{{key: "f1", act: actHelp}}, panes: []bind{{key: "?", act: actHelp}}, cmd: "/help",
		help: "keys and commands"},
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
	{label: "runs", rank: 1, any: []bind{{key: "f10", act: actRuns}}, panes: []bind{{key: "r", act: actRuns}}, cmd: "/runs",
		help: "every run of the session, compared"},
	{cmd: "/why", help: "why the last run was as slow as it was, and what helps"},
	{label: "again", rank: 1, any: []bind{{key: "ctrl+g", act: actAgain}}, panes: []bind{{key: "g", act: actAgain}}, cmd: "/again",
		help: "repeat the last prompt from the same start, cache emptied"},
	{label: "new chat", rank: 4, any: []bind{{key: "ctrl+n", act: actNewChat}}, cmd: "/new",
		help: "forget the conversation"},
	{label: "thoughts", rank: 6, any: []bind{{key: "ctrl+t", act: actFold}}, panes: []bind{{key: "t", act: actFold}}, cmd: "/thoughts",
		help: "fold or unfold the reasoning"},
	{label: "freeze", rank: 3, panes: []bind{{key: "space", act: actFreeze}}, cmd: "/freeze",
		help: "hold the panes still; recording goes on"},
	{label: "expand", rank: 3, panes: []bind{{key: "e", act: actExpand}, {key: "enter", act: actExpand}},
		help: "the picked pane over the whole screen, and back"},
	{label: "pane", rank: 3, panes: []bind{{key: "1", act: actPick1}, {key: "2", act: actPick2}, {key: "3", act: actPick3}, {key: "4", act: actPick4}, {key: "5", act: actPick5}, {key: "6", act: actPick6}},
		help: "pick a pane"},
	{panes: []bind{{key: "up", act: actPickUp}, {key: "k", act: actPickUp}, {key: "down", act: actPickDown}, {key: "j", act: actPickDown}},
		help: "pick the pane above or below"},
	{label: "panes", rank: 2, any: []bind{{key: "tab", act: actSwitch}, {key: "shift+tab", act: actSwitch}},
		help: "from the prompt to the panes and back"},
	{label: "stop", rank: 2, any: []bind{{key: "esc", act: actStop}}, cmd: "/stop",
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
	{any: []bind{{key: "ctrl+home", act: actTop}, {key: "ctrl+end", act: actBottom}}, panes: []bind{{key: "home", act: actTop}, {key: "end", act: actBottom}},
		help: "start or end of the chat; Home and End too while the prompt is empty"},
	{chat: []bind{{key: "enter", act: actSend}},
		help: "send the prompt"},
	{chat: []bind{{key: "alt+enter", act: actNewline}, {key: "shift+enter", act: actNewline}, {key: "ctrl+j", act: actNewline}},
		help: "a new line in the prompt; a paste keeps its lines"},
	{chat: []bind{{key: "up", act: actHistoryUp}, {key: "down", act: actHistoryDown}},
		help: "earlier and later prompts, at the prompt's first and last line"},
	{runs: []bind{{key: "up", act: actRunUp}, {key: "down", act: actRunDown}, {key: "k", act: actRunUp}, {key: "j", act: actRunDown}},
		help: "pick a run in the list of runs"},
	{runs: []bind{{key: "enter", act: actBaseline}},
		help: "compare every run with the picked one; again: choose for itself"},
}

// lookup finds what a key asks for among the keys that one column of the table
// holds.
func lookup(key string, column func(*keyRow) []bind) bind {
	for i := range keyTable {
		for _, b := range column(&keyTable[i]) {
			if b.key == key {
				b.setting = keyTable[i].setting
				return b
			}
		}
	}
	return bind{}
}

func anyKeys(r *keyRow) []bind  { return r.any }
func paneKeys(r *keyRow) []bind { return r.panes }
func chatKeys(r *keyRow) []bind { return r.chat }
func runsKeys(r *keyRow) []bind { return r.runs }

// keyNames are the names on the caps.
var keyNames = map[string]string{
	"ctrl+g": "^G", "ctrl+n": "^N", "ctrl+t": "^T", "ctrl+c": "^C", "ctrl+d": "^D", "ctrl+z": "^Z", "ctrl+j": "^J", "ctrl+l": "^L",
	"ctrl+home": "^Home", "ctrl+end": "^End", "alt+enter": "Alt+Enter", "shift+enter": "Shift+Enter",
	"tab": "Tab", "shift+tab": "Shift+Tab", "esc": "Esc", "space": "Space", "enter": "Enter",
	"up": "Up", "down": "Down", "pgup": "PgUp", "pgdown": "PgDn", "home": "Home", "end": "End",
	"f1": "F1", "f2": "F2", "f3": "F3", "f4": "F4", "f5": "F5", "f6": "F6", "f7": "F7", "f10": "F10",
}

// caps joins the names of keys.
func caps(bs []bind, sep string) string {
	s := ""
	for i, b := range bs {
		name := keyNames[b.key]
		if name == "" {
			name = b.key
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
			for i := range keyTable {
				if r := &keyTable[i]; r.setting == s.Name && len(r.any) > 0 {
					return caps(r.any[:1], "")
				}
			}
		}
		return backend.AsCommand(s, value)
	})
}
