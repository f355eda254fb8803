package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"io"
	"time"
)

// tarred writes files below a directory, with the same owner, time and order each time.
func tarred(w io.Writer, dir string, files []file, at time.Time) error {
	packed := gzip.NewWriter(w)
	archive := tar.NewWriter(packed)
	for _, f := range files {
		err := archive.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: dir + "/" + f.name, Mode: f.mode, Size: int64(len(f.bytes)), ModTime: at, Format: tar.FormatUSTAR,
		})
		if err != nil {
			return err
		}
		if _, err := archive.Write(f.bytes); err != nil {
			return err
		}
	}
	return cmp.Or(archive.Close(), packed.Close())
}

// zipped is tarred for Windows.
func zipped(w io.Writer, dir string, files []file, at time.Time) error {
	archive := zip.NewWriter(w)
	for _, f := range files {
		to, err := archive.CreateHeader(&zip.FileHeader{Name: dir + "/" + f.name, Method: zip.Deflate, Modified: at})
		if err != nil {
			return err
		}
		if _, err := to.Write(f.bytes); err != nil {
			return err
		}
	}
	return archive.Close()
}
