package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// A file has one time for all its results. Those that are asked for behind it are not
// waited for; here the others are waited for at once and take the whole time.
func TestFileWaitsOnceForAllItsResults(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var mu sync.Mutex
	waits, asked := 0, make(map[string]bool) // paths of results
	target, err := url.Parse("http://" + h.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seconds := r.FormValue("waitSeconds"); seconds != "" {
			mu.Lock()
			asked[r.URL.Path] = true
			if seconds != "0" {
				waits++
			}
			mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	defer server.Close()
	const lines = 3 * waitersAtOnce
	code, out, errs := codeq("", "--url", server.URL, "enqueue", "q", "--file", fileOf(t, strings.Repeat("1\n", lines)), "--wait", "1400ms")
	if code != exitAgain || strings.Count(errs, "result_not_found") != lines {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	if waits > waitersAtOnce || len(asked) != lines {
		t.Errorf("%d results are asked for and %d are waited for, want %d and %d at most", len(asked), waits, lines, waitersAtOnce)
	}
}

// One that is there is printed, however late it is asked for.
func TestFileWithResultsPrintsThemAll(t *testing.T) {
	h := newHouse(t)
	w := h.work("q", "--window", "8", "--", "cat")
	const lines = 2*waitersAtOnce + 1
	out := h.fine("enqueue", "q", "--file", fileOf(t, strings.Repeat("1\n", lines)), "--wait", "1m")
	if n := strings.Count(out, "COMPLETED"); n != lines {
		t.Errorf("%d results of %d are printed: %s", n, lines, out)
	}
	w.stop()
}
