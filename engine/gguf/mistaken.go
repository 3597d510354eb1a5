package gguf

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// mistaken says what a file without the magic is, where that is one of the
// things that commonly lie in a model's place, and what to do about it.
func mistaken(path string, head []byte) error {
	text := bytes.ToLower(bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"))
	switch {
	case bytes.HasPrefix(text, []byte("version https://git-lfs")):
		return fileError(path, "is a Git LFS pointer, a few lines that stand for the model; get the model itself: git lfs pull in its folder, or download the file")
	case bytes.HasPrefix(text, []byte("<!doctype html")), bytes.HasPrefix(text, []byte("<html")):
		return fileError(path, "is an HTML page, not a model: the server answered the download with a page, for instance to log in; download the file itself")
	}
	if err := pieceError(path); err != nil {
		return err
	}
	return fileError(path, "not a GGUF file: it starts with %s instead of %q", quote(string(head[:min(4, len(head))])), magic)
}

// pieceName is the name of a part of a file that was cut by size to upload it,
// without regard to its content.
var pieceName = regexp.MustCompile(`(?i)^(.+)\.part(\d{1,3})of(\d{1,3})$`)

// pieceError says how to join the pieces if the path is that of one, else nil. A
// piece cannot be read alone, but the name is only a hint: it is asked after
// reading has failed.
func pieceError(path string) error {
	m := pieceName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return nil
	}
	no, err1 := strconv.Atoi(m[2])
	count, err2 := strconv.Atoi(m[3])
	if err1 != nil || err2 != nil || no < 1 || no > count {
		return nil
	}
	var pieces []string
	for i := 1; i <= count; i++ {
		if count > 4 && i > 2 && i < count { // a long list is understood without its middle
			if i == 3 {
				pieces = append(pieces, "...")
			}
			continue
		}
		// The number is written as the file at hand has it: with or without leading zeros.
		pieces = append(pieces, fmt.Sprintf("%s.part%0*dof%s", m[1], len(m[2]), i, m[3]))
	}
	return fileError(path, "is piece %d of %d of a file that was cut; join them all first: cat %s > %s (Windows: copy /b %s %s)",
		no, count, strings.Join(pieces, " "), m[1], strings.Join(pieces, "+"), m[1])
}
