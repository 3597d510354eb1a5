// Pictures draws the pictures of the documentation: it runs the program in a pseudo
// terminal, types what a visitor would, and writes what stands on the screen as SVG.
//
//	go run ./scripts/pictures        # to docs/pictures
package main
