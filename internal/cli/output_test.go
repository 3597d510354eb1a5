package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// What terminals obey is escaped in JSON, and means the same.
func TestJSONEscapesControls(t *testing.T) {
	const text = "a\u007f\u0080\u009b31m\x1b[0m é 日"
	var b strings.Builder
	if err := NewOutput(&b).Line("", text); err != nil {
		t.Fatal(err)
	}
	if want := `"a\u007f\u0080\u009b31m\u001b[0m é 日"` + "\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	var back string
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back != text {
		t.Errorf("read back as %q, %v", back, err)
	}
}
