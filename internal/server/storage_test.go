package server

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"codeq/client"
	"codeq/wire"
)

// A server that is told to sends who asks for a file on to the bucket, which has it for whoever has
// the address and for nobody else's request; what only this server can answer it answers itself.
func TestWhoAsksForAFileIsSentOnToTheBucket(t *testing.T) {
	o, storage := bucketOptions(t)
	o.Artifacts.Redirect = true
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, s)
	x.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	task, token := x.claimed("")
	x.upload(task, token, "a/b", "content")
	if a := x.finish(task, `,"artifacts":[{"name":"a/b"}]`); a.status != http.StatusOK {
		t.Fatalf("result: %d %s", a.status, a.body)
	}
	path := wire.ArtifactPath(task.ID, "a/b")
	a := x.ask("GET", path, "")
	at, err := url.Parse(a.header.Get("Location"))
	if a.status != http.StatusTemporaryRedirect || a.body != "" || err != nil || "http://"+at.Host != storage.URL || at.User != nil {
		t.Fatalf("%d %v %q", a.status, a.header, a.body)
	}
	x.isPresigned(at)
	for header, want := range map[string]string{"": "content", "bytes=3-": "tent"} {
		if got := x.fetched(at.String(), header); got != want {
			t.Errorf("the storage answers %q, want %q", got, want)
		}
	}
	etag := `"` + sumOf("content") + `"`
	if a := x.send("GET", path, nil, "If-None-Match", etag); a.status != http.StatusNotModified {
		t.Errorf("If-None-Match: %d", a.status)
	}
	if a := x.send("HEAD", path, nil); a.status != http.StatusOK || a.header.Get("Content-Length") != "7" {
		t.Errorf("HEAD: %d %v", a.status, a.header)
	}
	if a := x.as("").ask("GET", wire.ArtifactPath(task.ID, "none"), ""); a.status != http.StatusNotFound {
		t.Errorf("another name: %d", a.status)
	}
	x.clientGets(task.ID, "a/b", "content")
	if err := s.artifacts.Driver.Forget(task.ID); err != nil {
		t.Fatal(err)
	}
	if a := x.ask("GET", path, ""); a.code() != wire.CodeNotFound {
		t.Errorf("a file that is gone: %d %s", a.status, a.body)
	}
}

// isPresigned looks at the address of a file in a bucket.
func (x *site) isPresigned(at *url.URL) {
	x.t.Helper()
	for name, want := range map[string]string{
		"X-Amz-Expires": "300", "response-content-type": "application/octet-stream", "response-content-disposition": "attachment; filename*=UTF-8''a%2Fb",
	} {
		if got := at.Query().Get(name); got != want {
			x.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if at.Query().Get("X-Amz-Signature") == "" || at.Query().Get("X-Amz-SignedHeaders") != "host" {
		x.t.Errorf("the address %v is not signed for whoever has it", at)
	}
}

// fetched is the body behind an address, without any credential.
func (x *site) fetched(at, rangeOf string) string {
	x.t.Helper()
	r, err := http.NewRequest("GET", at, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	if rangeOf != "" {
		r.Header.Set("Range", rangeOf)
	}
	response, err := x.http.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		x.t.Fatal(err)
	}
	return string(body)
}

// clientGets has a client get a file, wherever it is sent.
func (x *site) clientGets(id wire.TaskID, name, want string) {
	x.t.Helper()
	c, err := client.New(x.server.Addr())
	if err != nil {
		x.t.Fatal(err)
	}
	defer c.Close()
	content, err := c.Artifact(x.t.Context(), id, name)
	if err != nil {
		x.t.Fatal(err)
	}
	got, err := io.ReadAll(content)
	if err := errors.Join(err, content.Close()); err != nil || string(got) != want {
		x.t.Errorf("the client gets %q, %v", got, err)
	}
}

// The files of a tenant have as many bytes as its limit says, exactly: those of results, of uploads
// and under way, over restarts, replacements, deliveries that end and tasks that go.
func TestTheFilesOfATenantHaveALimit(t *testing.T) {
	dir := t.TempDir()
	x := openSite(t, dir)
	before, early := x.claimed("")
	x.upload(before, early, "a", "12345")
	x.mustLimit(`{"artifactBytes":20}`)
	x.filesUse(5)
	task, token := x.claimed("")
	refused := func(a answer, code wire.Code) { t.Helper(); a.isRefused(t, code) }
	fits := func(a answer) { t.Helper(); a.isRefused(t, "") }
	chunked := func(content string) answer {
		return x.send("PUT", wire.ArtifactPath(task.ID, "c"), io.MultiReader(strings.NewReader(content)), wire.LeaseTokenHeader, token.String())
	}
	refused(x.upload(task, token, "a", strings.Repeat("x", 21)), wire.CodeTooLarge)
	refused(chunked(strings.Repeat("x", 21)), wire.CodeTooLarge)
	refused(x.upload(task, token, "a", strings.Repeat("x", 16)), wire.CodeRateLimited)
	refused(chunked(strings.Repeat("x", 16)), wire.CodeRateLimited)
	fits(x.upload(task, token, "a", "1234567890"))
	fits(chunked("12345"))
	x.filesUse(20)
	refused(x.upload(task, token, "d", "1"), wire.CodeRateLimited)
	fits(x.upload(task, token, "d", ""))
	x.mustLimit(`{"artifactBytes":30}`)
	fits(x.upload(task, token, "a", "123456789")) // in place of one of ten
	x.filesUse(19)
	x.close()
	x = openSite(t, dir)
	x.filesUse(19)
	content := base64.StdEncoding.EncodeToString([]byte("123456789012"))
	members := `,"leaseToken":"` + token.String() + `","artifacts":[{"name":"a"},{"name":"n","contentBase64":"` + content + `"}]`
	refused(x.finish(task, members), wire.CodeRateLimited)
	x.filesUse(19)
	x.mustLimit(`{"artifactBytes":31}`)
	fits(x.finish(task, members)) // c and d are not named
	fits(x.finish(task, members)) // it was taken before
	x.filesUse(26)
	x.ask("POST", fmt.Sprintf("/v1/codeq/tasks/%v/nack", before.ID), `{"leaseToken":"`+early.String()+`"}`)
	x.filesUse(21)
	x.kill()
	x = openSite(t, dir)
	x.filesUse(21)
	if page := x.ask("GET", "/metrics", "").body; !strings.Contains(page, "\ncodeq_artifact_bytes 21\n") {
		t.Error("the metric of the bytes of files is wrong")
	}
	x.ask("POST", "/v1/codeq/admin/tasks/cleanup", `{"before":"2200-01-01T00:00:00Z"}`)
	x.filesUse(0)
}

func (x *site) mustLimit(body string) {
	x.t.Helper()
	if a := x.ask("PUT", "/v1/codeq/admin/limits/default", body); a.status != http.StatusOK {
		x.t.Fatalf("limits: %d %s", a.status, a.body)
	}
}

// filesUse waits until so much of the limit of files is used.
func (x *site) filesUse(want int64) {
	x.t.Helper()
	var f *wire.LimitsFigures
	var err error
	for until := time.Now().Add(patience); time.Now().Before(until); runtime.Gosched() {
		f, err = wire.ParseLimitsFigures([]byte(x.ask("GET", "/v1/codeq/admin/limits/default", "").body))
		if err == nil && f.Used.Files == want {
			return
		}
	}
	x.t.Errorf("%+v are used, %v, want %d", f, err, want)
}

// isRefused wants a refusal, or with "" none.
func (a answer) isRefused(t *testing.T, code wire.Code) {
	t.Helper()
	if a.code() != code || code == wire.CodeRateLimited && (a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "") {
		t.Errorf("%d %v %s, want %s", a.status, a.header, a.body, code)
	}
}
