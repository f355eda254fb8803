package blackbox

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
)

// PID is the id of the process while it runs.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// DirBytes is what the files of the data directory take together. One that goes
// while they are counted counts nothing.
func (s *Server) DirBytes() int64 {
	s.t.Helper()
	var sum int64
	err := filepath.WalkDir(s.Dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				sum += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return sum
}

// Metrics is the page of /metrics, which may be a second old.
func (s *Server) Metrics() string {
	s.t.Helper()
	once := &http.Client{Timeout: answerFor, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := once.Get(s.URL() + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	page, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		s.t.Fatal(err)
	}
	return string(page)
}

// Figure is the value of a series on a page of /metrics, named with its labels.
// One that is not there is 0.
func Figure(page, series string) float64 {
	for line := range strings.Lines(page) {
		rest, ok := strings.CutPrefix(line, series+" ")
		if value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64); ok && err == nil {
			return value
		}
	}
	return 0
}
