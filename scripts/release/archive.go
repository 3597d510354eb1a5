package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"time"
)

// file is one file of an archive.
type file struct {
	name string
	mode int64 // permission bits
	data []byte
}

// writeTarGz packs files under a folder, all with one time, so that equal files
// give equal archives.
func writeTarGz(w io.Writer, folder string, when time.Time, files []file) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: when, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

// writeZip does the same for Windows, which opens zip files by itself.
func writeZip(w io.Writer, folder string, when time.Time, files []file) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		dst, err := z.CreateHeader(&zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: when})
		if err != nil {
			return err
		}
		if _, err := dst.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}
