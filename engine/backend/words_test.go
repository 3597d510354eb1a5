package backend

import "testing"

var rows = []Setting{
	{Name: "lanes", Flag: "io-threads", Kind: Whole, Live: true},
	{Name: "force-cache", Flag: "force-cache", Kind: Switch},
	{Name: "overlap", Flag: "overlap", Kind: Switch, Live: true},
}

func TestEachFaceWordsAMention(t *testing.T) {
	const text = "{lanes=8} or {force-cache=on}, not {overlap=off}; {lanes} stay, {path} and {Lanes} and { do too"
	for _, c := range []struct {
		say  Say
		want string
	}{
		{AsFlag, "--io-threads 8 or --force-cache, not --overlap=false; --io-threads stay, {path} and {Lanes} and { do too"},
		{AsCommand, "/lanes 8 or --force-cache, not /overlap off; /lanes stay, {path} and {Lanes} and { do too"},
		{PlainName, "lanes 8 or force-cache on, not overlap off; lanes stay, {path} and {Lanes} and { do too"},
	} {
		if got := Mention(text, rows, c.say); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestARefusalInTheWordsOfAFace(t *testing.T) {
	e := &SettingError{Setting: "lanes", Value: "99", Problem: "want 1 to 8", Remedy: "or {force-cache=on}"}
	for _, c := range []struct{ got, want string }{
		{e.Words(rows, AsFlag), "--io-threads 99: want 1 to 8: or --force-cache"},
		{e.Words(rows, AsCommand), "/lanes 99: want 1 to 8: or --force-cache"},
		{e.Error(), "lanes 99: want 1 to 8: or force-cache on"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
