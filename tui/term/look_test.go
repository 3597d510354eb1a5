package term

import (
	"fmt"
	"image/color"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// xterm are the 16 colours as xterm has them, unless its user chose others.
var xterm = [16]color.RGBA{
	{A: 255}, {205, 0, 0, 255}, {0, 205, 0, 255}, {205, 205, 0, 255}, {0, 0, 238, 255}, {205, 0, 205, 255}, {0, 205, 205, 255}, {229, 229, 229, 255},
	{127, 127, 127, 255}, {255, 0, 0, 255}, {0, 255, 0, 255}, {255, 255, 0, 255}, {92, 92, 255, 255}, {255, 0, 255, 255}, {0, 255, 255, 255}, {255, 255, 255, 255},
}

var rgb = regexp.MustCompile(`([34])8[;:]2[;:](?:[;:])?(\d+)[;:](\d+)[;:](\d+)`)

// colours reads what a style says of the text and of its ground; nil: nothing.
func colours(t *testing.T, s Style) (fg, bg color.Color) {
	text := strings.TrimSuffix(strings.TrimPrefix(string(s), "\x1b["), "m")
	for _, m := range rgb.FindAllStringSubmatch(text, -1) {
		var v [3]uint8
		for i := range v {
			n, err := strconv.ParseUint(m[i+2], 10, 8)
			if err != nil {
				t.Fatal(err)
			}
			v[i] = uint8(n)
		}
		c := color.RGBA{v[0], v[1], v[2], 255}
		if m[1] == "3" {
			fg = c
		} else {
			bg = c
		}
	}
	for code := range strings.SplitSeq(rgb.ReplaceAllString(text, ""), ";") {
		n, err := strconv.Atoi(code)
		switch {
		case err != nil:
		case n >= 30 && n < 38:
			fg = xterm[n-30]
		case n >= 90 && n < 98:
			fg = xterm[n-90+8]
		}
	}
	return fg, bg
}

// Every style of every theme that text can have stands out from black, or from white,
// by 4.5 at least, and with high contrast by 7; text on a ground of its own likewise.
func TestContrast(t *testing.T) {
	checked := 0
	for _, name := range Themes {
		for _, dark := range []bool{true, false} {
			look, _ := LookOf(name, dark)
			least := leastContrast
			if look.High {
				least = highContrast
			}
			check := func(what string, s Style) {
				fg, bg := colours(t, s)
				if fg == nil && bg == nil && strings.Contains(string(s), "8;2;") {
					t.Fatalf("%s: %q cannot be read", what, s)
				}
				if fg != nil {
					checked++
					if c := Contrast(fg, look.Dark); c < least {
						t.Errorf("%s, dark %v: %s stands out by %.2f", name, look.Dark, what, c)
					}
				}
				if bg != nil { // under the default colour of text, white or black
					if c := Contrast(bg, !look.Dark); c < least {
						t.Errorf("%s, dark %v: text on the ground of %s stands out by %.2f", name, look.Dark, what, c)
					}
				}
			}
			v := reflect.ValueOf(NewTheme(look, false)).Elem()
			for i := range v.NumField() {
				switch f := v.Field(i).Interface().(type) {
				case Style:
					check(v.Type().Field(i).Name, f)
				case Heat:
					for level, s := range f.On {
						check(fmt.Sprint(v.Type().Field(i).Name, " ", level), s)
					}
				}
			}
		}
	}
	if checked < 200 {
		t.Errorf("%d styles with colours", checked)
	}
}

// Contrast is as WCAG has it.
func TestContrastOfKnownColours(t *testing.T) {
	for _, c := range []struct {
		of      color.RGBA
		onBlack bool
		want    float64
	}{
		{color.RGBA{255, 255, 255, 255}, true, 21}, {color.RGBA{A: 255}, true, 1}, {color.RGBA{A: 255}, false, 21}, {color.RGBA{0x76, 0x76, 0x76, 255}, false, 4.54}, {color.RGBA{255, 0, 0, 255}, true, 5.25},
	} {
		if got := Contrast(c.of, c.onBlack); got < c.want-0.01 || got > c.want+0.01 {
			t.Errorf("%v on black %v: %.3f, want %.2f", c.of, c.onBlack, got, c.want)
		}
	}
}

// The themes by name: which follow the background, and which have the terminal's own
// colours and no others.
func TestThemes(t *testing.T) {
	for name, asks := range map[string]bool{"auto": true, "": true, "dark": false, "light": false, "high-contrast": true, "16": true} {
		light, got := LookOf(name, false)
		dark, _ := LookOf(name, true)
		if got != asks || (light != dark) != asks {
			t.Errorf("%s: %v, %+v, %+v", name, got, light, dark)
		}
	}
	for _, dark := range []bool{true, false} {
		look, _ := LookOf("16", dark)
		if th := NewTheme(look, false); strings.Contains(fmt.Sprintf("%+v", *th), "8;2;") {
			t.Errorf("dark %v: more than 16 colours", dark)
		}
	}
}
