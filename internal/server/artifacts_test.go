package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/rs/zerolog"

	"codeq/internal/artifact"
	"codeq/internal/auth"
	"codeq/wire"
)

// send is ask with headers, and a body that may have any length.
func (x *site) send(method, path string, body io.Reader, headers ...string) answer {
	x.t.Helper()
	r, err := http.NewRequest(method, "http://"+x.server.Addr()+path, body)
	if err != nil {
		x.t.Fatal(err)
	}
	if x.token != "" {
		r.Header.Set("Authorization", "Bearer "+x.token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := x.http.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// claimed makes a task and takes it.
func (x *site) claimed(members string) (*wire.Task, wire.Token) {
	x.t.Helper()
	x.post(`{"command":"filed","payload":1` + members + `}`)
	a := x.ask("POST", "/v1/codeq/tasks/claim", `{"commands":["filed"],"waitSeconds":10}`)
	task, token, err := wire.ParseClaimed([]byte(a.body))
	if err != nil {
		x.t.Fatalf("claim: %d %s %v", a.status, a.body, err)
	}
	return task, token
}

func (x *site) upload(task *wire.Task, token wire.Token, name, content string) answer {
	x.t.Helper()
	return x.send("PUT", wire.ArtifactPath(task.ID, name), strings.NewReader(content), wire.LeaseTokenHeader, token.String(), "Content-Type", "text/html")
}

func (x *site) finish(task *wire.Task, members string) answer {
	x.t.Helper()
	return x.ask("POST", fmt.Sprintf("/v1/codeq/tasks/%v/result", task.ID), `{"result":{}`+members+`}`)
}

func sumOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func TestArtifactsAreUploadedNamedAndGot(t *testing.T) {
	openSite(t, t.TempDir()).artifactsComeAndGo(t)
}

// The same over S3, and a start ends in a sentence if the storage is not there.
func TestArtifactsAreUploadedToABucket(t *testing.T) {
	o, storage := bucketOptions(t)
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, s)
	x.artifactsComeAndGo(t)
	x.close()
	storage.CloseClientConnections()
	storage.Close()
	o.Artifacts.S3 = "s3://nowhere/codeq?endpoint=no"
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "storage of artifacts s3://nowhere") {
		t.Errorf("without a storage: %v", err)
	}
}

// bucketOptions are those of a server with a bucket in this process.
func bucketOptions(t *testing.T) (Options, *httptest.Server) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("files"); err != nil {
		t.Fatal(err)
	}
	storage := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(storage.Close)
	return Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Log: zerolog.Nop(), Artifacts: Artifacts{
		S3: "s3://files/codeq?endpoint=" + url.QueryEscape(storage.URL), S3Keys: S3Keys{Access: "a", Secret: "s"},
	}}, storage
}

func (x *site) artifactsComeAndGo(t *testing.T) {
	task, token := x.claimed(`,"traceParent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`)
	x.upload(task, token, "log", "old")
	a := x.upload(task, token, "log", "new content")
	file, err := wire.ParseArtifact([]byte(a.body))
	if a.status != http.StatusOK || err != nil || file.SHA256 != sumOf("new content") || file.SizeBytes != 11 || file.ContentType != "text/html" {
		t.Fatalf("upload: %d %s", a.status, a.body)
	}
	if a := x.ask("GET", wire.ArtifactPath(task.ID, "log"), ""); a.code() != wire.CodeResultNotFound {
		t.Errorf("before the result: %d %s", a.status, a.body)
	}
	x.upload(task, token, "unnamed", "x")
	small := base64.StdEncoding.EncodeToString([]byte("small"))
	if a := x.finish(task, `,"artifacts":[{"name":"log"},{"name":"s","contentBase64":"`+small+`"},{"name":"e","contentBase64":""},{"name":"l","url":"http://l"}]`); a.status != http.StatusOK {
		t.Fatalf("result: %d %s", a.status, a.body)
	}
	list, err := wire.ParseArtifacts([]byte(x.ask("GET", fmt.Sprintf("/v1/codeq/tasks/%v/artifacts", task.ID), "").body))
	if err != nil || len(list) != 4 || list[1].SHA256 != sumOf("small") || list[2].SHA256 != sumOf("") || list[3].URL != "http://l" {
		t.Errorf("the list is %+v, %v", list, err)
	}
	for name, want := range map[string]string{"log": "new content", "s": "small", "e": ""} {
		a := x.ask("GET", wire.ArtifactPath(task.ID, name), "")
		h := a.header
		if a.body != want || h.Get("Content-Type") != "application/octet-stream" || h.Get("Content-Disposition") != "attachment; filename*=UTF-8''"+name ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Etag") != `"`+sumOf(want)+`"` ||
			h.Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'; sandbox" || h.Get("Traceparent") != task.TraceParent {
			t.Errorf("%s: %d %v %q", name, a.status, h, a.body)
		}
	}
	x.partsAreGot(wire.ArtifactPath(task.ID, "log"), wire.ArtifactPath(task.ID, "e"))
	for _, name := range []string{"l", "unnamed", "none"} {
		if a := x.ask("GET", wire.ArtifactPath(task.ID, name), ""); a.code() != wire.CodeNotFound || a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	x.filesAre(task.ID, 3)
	if a := x.upload(task, token, "late", "x"); a.code() != wire.CodeNotInProgress {
		t.Errorf("an upload after the end: %d %s", a.status, a.body)
	}
	x.filesAre(task.ID, 3)
	x.ask("POST", "/v1/codeq/admin/tasks/cleanup", `{"before":"2200-01-01T00:00:00Z"}`)
	x.filesAre(task.ID, 0)
}

// partial are requests for parts of a file whose content is "new content".
var partial = []struct {
	method, header, value string
	status                int
	body                  string
}{
	{"GET", "Range", "bytes=4-6", 206, "con"}, {"GET", "Range", "bytes=-3", 206, "ent"}, {"GET", "Range", "bytes=99-", 416, ""},
	{"GET", "Range", "bytes=-99", 206, "new content"}, {"GET", "Range", "bytes=4-99", 206, "content"}, {"GET", "Range", "bytes=4-6,99-", 206, "con"},
	{"GET", "If-None-Match", `"` + sumOf("new content") + `"`, 304, ""}, {"HEAD", "", "", 200, ""}, {"GET", "If-Match", `"x"`, 412, ""},
	// What RFC 9110 lets a server ignore.
	{"HEAD", "Range", "bytes=4-6", 200, ""}, {"GET", "Range", "bytes=-0", 200, "new content"}, {"GET", "Range", "lines=1-2", 200, "new content"},
	{"GET", "Range", "bytes=a-b", 200, "new content"}, {"GET", "Range", "bytes=", 200, "new content"}, {"GET", "Range", "bytes=4", 200, "new content"},
	{"GET", "Range", "bytes=0-0" + strings.Repeat(",0-0", 16), 200, "new content"}, {"GET", "Range", "bytes=0-9,3-9", 200, "new content"},
}

// partsAreGot asks for parts of a file, and of an empty one.
func (x *site) partsAreGot(at, empty string) {
	x.t.Helper()
	for _, r := range partial {
		headers := []string{r.header, r.value}
		if r.header == "" {
			headers = nil
		}
		if a := x.send(r.method, at, nil, headers...); a.status != r.status || a.body != r.body {
			x.t.Errorf("%s %s %s: %d %q", r.method, r.header, r.value, a.status, a.body)
		}
	}
	if a := x.send("GET", at, nil, "Range", "bytes=99-"); a.header.Get("Content-Range") != "bytes */11" {
		x.t.Errorf("the length beside 416: %v", a.header)
	}
	if a := x.send("GET", at, nil, "Range", "bytes=0-2, 4-6"); a.status != 206 || !strings.HasPrefix(a.header.Get("Content-Type"), "multipart/byteranges") ||
		!strings.Contains(a.body, "bytes 0-2/11") || !strings.Contains(a.body, "\r\n\r\ncon\r\n") {
		x.t.Errorf("two parts: %d %v %q", a.status, a.header, a.body)
	}
	if a := x.send("GET", empty, nil, "Range", "bytes=-5"); a.status != 200 || a.body != "" {
		x.t.Errorf("the end of an empty file: %d %v", a.status, a.header)
	}
}

// filesAre waits until so many files of a task are there.
func (x *site) filesAre(id wire.TaskID, want int) {
	x.t.Helper()
	var files []string
	var err error
	for until := time.Now().Add(patience); time.Now().Before(until); runtime.Gosched() {
		if files, err = x.server.artifacts.Driver.Files(id); err != nil {
			x.t.Fatal(err)
		}
		if len(files) == want {
			return
		}
	}
	x.t.Fatalf("the files are %v, want %d", files, want)
}

// hostileNames are names of artifacts, and whether a server takes them.
var hostileNames = map[string]bool{
	"a.txt": true, "plots/1.png": true, "...": true, ".hidden": true, "a b%2e%2e%2f": true, `C:\con`: true, "</script><script>alert(1)": true,
	`"; filename="x.html`: true, "שלום": true, "日本\U0001F600": true, strings.Repeat("n", 1024): true, "artifacts?x=1#y": true, "-rf": true,
	"..": false, ".": false, "../x": false, "a/../../x": false, "a//b": false, "/etc/passwd": false, "a/": false, "a\x00b": false,
	"a\r\nSet-Cookie: x": false, "exe.\u202Egpj": false, "a\u2066b": false, "\u061C": false, "a\u2028b": false, "\u0085": false, "\uFFFD": false,
	strings.Repeat("n", 1025): false, "\xff": false,
}

// No name leads out of the directory, into a header or onto a page.
func TestNamesOfArtifactsLeadNowhere(t *testing.T) {
	x := openSite(t, t.TempDir())
	for name, good := range hostileNames {
		task, token := x.claimed("")
		path := fmt.Sprintf("/v1/codeq/tasks/%v/artifacts/%s", task.ID, url.PathEscape(name))
		a := x.send("PUT", path, strings.NewReader("content"), wire.LeaseTokenHeader, token.String())
		if good != (a.status == http.StatusOK) || !good && a.code() != wire.CodeInvalidArgument && a.code() != wire.CodeNotFound {
			t.Errorf("PUT %.40q: %d %s", name, a.status, a.body)
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		a = x.finish(task, `,"artifacts":[{"name":`+string(quoted)+`,"contentBase64":"AA=="}]`)
		if good != (a.status == http.StatusOK) || !good && a.code() != wire.CodeInvalidResult {
			t.Errorf("contentBase64 as %.40q: %d %s", name, a.status, a.body)
		}
		if !good {
			continue
		}
		got := x.ask("GET", path, "")
		disposition := got.header.Get("Content-Disposition")
		if got.body != "\x00" || disposition != "attachment; filename*=UTF-8''"+url.PathEscape(name) || strings.ContainsAny(disposition, "\"\r\n<") {
			t.Errorf("GET %.40q: %d %q %q", name, got.status, disposition, got.body)
		}
	}
}

// An upload that breaks a rule leaves no file, and each is refused with its own code.
func TestUploadsAreRefused(t *testing.T) {
	f := newTokenFile(t)
	owner, stranger := f.addAll("owner"), f.addAll("stranger")
	producer := f.add("owner", []string{auth.ScopeProduce, auth.ScopeClaim}, []string{wire.AllCommands})
	tokens, err := auth.OpenTokens(f.path)
	if err != nil {
		t.Fatal(err)
	}
	disk := vfs.NewMem()
	s, err := Open(Options{DataDir: "data", FS: disk, Listen: "127.0.0.1:0", Tokens: tokens, Log: zerolog.Nop(), Artifacts: Artifacts{MaxBytes: 10}})
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, s).as(owner)
	task, token := x.claimed("")
	wrong := wire.Token{1}
	for _, r := range []struct {
		as, token, content string
		chunked            bool
		code               wire.Code
	}{
		{owner, token.String(), "more than 10", false, wire.CodeTooLarge}, {owner, token.String(), "more than 10", true, wire.CodeTooLarge},
		{owner, wrong.String(), "x", false, wire.CodeLeaseLost}, {owner, "no", "x", false, wire.CodeInvalidArgument},
		{stranger, token.String(), "x", false, wire.CodeTaskNotFound}, {producer, token.String(), "x", false, wire.CodeForbidden},
		{"", token.String(), "x", false, wire.CodeUnauthenticated},
	} {
		var body io.Reader = strings.NewReader(r.content)
		if r.chunked {
			body = io.MultiReader(body)
		}
		a := x.as(r.as).send("PUT", wire.ArtifactPath(task.ID, "a"), body, wire.LeaseTokenHeader, r.token)
		if a.code() != r.code {
			t.Errorf("%+v: %d %s", r, a.status, a.body)
		}
	}
	long := "a/" + strings.Repeat("b", wire.MaxContentTypeBytes)
	if a := x.send("PUT", wire.ArtifactPath(task.ID, "a"), strings.NewReader("x"), wire.LeaseTokenHeader, token.String(), "Content-Type", long); a.code() != wire.CodeInvalidArgument {
		t.Errorf("a long type: %d %s", a.status, a.body)
	}
	content := base64.StdEncoding.EncodeToString([]byte("more than 10"))
	for members, code := range map[string]wire.Code{
		`,"artifacts":[{"name":"a","contentBase64":"` + content + `"}]`:                                               wire.CodeTooLarge,
		`,"artifacts":[{"name":"a","contentBase64":"AA=="},{"name":"b"}]`:                                             wire.CodeInvalidResult,
		`,"artifacts":[{"name":"a","contentBase64":"AA=="},{"name":"a","url":"http://x"}]`:                            wire.CodeInvalidResult,
		`,"artifacts":[{"name":"a","contentBase64":"A"}]`:                                                             wire.CodeInvalidResult,
		`,"leaseToken":"` + wrong.String() + `","artifacts":[{"name":"a","contentBase64":"AA=="}]`:                    wire.CodeLeaseLost,
		`,"artifacts":[{"name":"a","contentBase64":"AA==","url":"http://x"}]`:                                         wire.CodeInvalidResult,
		`,"leaseToken":"` + token.String() + `","artifacts":[{"name":"a","contentBase64":"AA==","contentType":"\n"}]`: wire.CodeInvalidResult,
	} {
		if a := x.finish(task, members); a.code() != code {
			t.Errorf("%s: %d %s", members, a.status, a.body)
		}
	}
	x.filesAre(task.ID, 0)
	full, err := artifact.OpenDir(smallSpace{disk}, "full", 1)
	if err != nil {
		t.Fatal(err)
	}
	x.server.artifacts.Driver = full
	if a := x.upload(task, token, "a", "x"); a.code() != wire.CodeStorageFull || a.status != 507 {
		t.Errorf("on a full disk: %d %s", a.status, a.body)
	}
	if a := x.finish(task, `,"leaseToken":"`+token.String()+`","artifacts":[{"name":"a","contentBase64":"AA=="}]`); a.code() != wire.CodeStorageFull {
		t.Errorf("a result with a file on a full disk: %d %s", a.status, a.body)
	}
	if a := x.finish(task, `,"leaseToken":"`+token.String()+`"`); a.status != http.StatusOK {
		t.Errorf("the result: %d %s", a.status, a.body)
	}
}

// A file that has lost bytes on the disk is not served as if it were whole.
func TestAFileThatHasLostBytesIsNotServed(t *testing.T) {
	x := openSite(t, t.TempDir())
	task, token := x.claimed("")
	x.upload(task, token, "a", "whole")
	if a := x.finish(task, `,"leaseToken":"`+token.String()+`","artifacts":[{"name":"a"}]`); a.status != http.StatusOK {
		t.Fatalf("the result: %d %s", a.status, a.body)
	}
	files, err := x.server.artifacts.Driver.Files(task.ID)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := x.server.artifacts.Driver.Put(artifact.Key{Task: task.ID, File: files[0]}, strings.NewReader("who")); err != nil {
		t.Fatal(err)
	}
	if a := x.send("GET", wire.ArtifactPath(task.ID, "a"), http.NoBody); a.code() != wire.CodeInternal {
		t.Errorf("a short file: %d %s", a.status, a.body)
	}
}

// A batch stores the files of its results, and a repetition gets the same answer and leaves no file.
func TestABatchOfResultsHasFiles(t *testing.T) {
	x := openSite(t, t.TempDir())
	var items []string
	var tasks []*wire.Task
	for i := range 12 {
		task, token := x.claimed("")
		tasks = append(tasks, task)
		items = append(items, fmt.Sprintf(`{"taskId":"%v","leaseToken":"%v","result":{},"artifacts":[{"name":"n","contentBase64":"%s"}]}`,
			task.ID, token, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(i)}, i))))
	}
	items = append(items, `{"taskId":"`+unknownID+`","result":{},"artifacts":[{"name":"n","contentBase64":"AA=="}]}`)
	batch := `{"results":[` + strings.Join(items, ",") + `]}`
	first := x.ask("POST", "/v1/codeq/tasks/batch/results", batch)
	again := x.ask("POST", "/v1/codeq/tasks/batch/results", batch)
	if first.status != http.StatusOK || first.body != again.body || strings.Count(first.body, `"sha256"`) != 12 || !strings.Contains(first.body, `"code":"task_not_found"`) {
		t.Errorf("the batch: %d %s\nagain: %s", first.status, first.body, again.body)
	}
	for i, task := range tasks {
		x.filesAre(task.ID, 1)
		if a := x.ask("GET", wire.ArtifactPath(task.ID, "n"), ""); a.body != strings.Repeat(string(rune(i)), i) {
			t.Errorf("file %d: %d %q", i, a.status, a.body)
		}
	}
}

// A session names what was uploaded for it, and takes no contents.
func TestASessionNamesUploads(t *testing.T) {
	x := openSite(t, t.TempDir())
	x.post(`{"command":"filed","payload":1}`)
	k := x.dial()
	k.say(`{"type":"subscribe","ref":1,"commands":["filed"],"window":1}`)
	held := hear[*wire.TaskFrame](k)
	if a := x.send("PUT", wire.ArtifactPath(held.Task.ID, "a"), strings.NewReader("abc")); a.code() != wire.CodeNotOwner {
		t.Errorf("without the token: %d %s", a.status, a.body)
	}
	if a := x.upload(held.Task, held.Token, "a", "abc"); a.status != http.StatusOK {
		t.Fatalf("upload: %d %s", a.status, a.body)
	}
	result := fmt.Sprintf(`{"type":"result","ref":%%d,"taskId":"%v","leaseToken":"%v","result":{},"artifacts":[%%s]}`, held.Task.ID, held.Token)
	k.say(fmt.Sprintf(result, 2, `{"name":"b","contentBase64":"AA=="}`))
	if e := hear[*wire.ErrorFrame](k); e.Err.Code != wire.CodeInvalidResult {
		t.Errorf("contents in a session: %+v", e)
	}
	k.say(fmt.Sprintf(result, 3, `{"name":"b"}`))
	if e := hear[*wire.ErrorFrame](k); e.Err.Code != wire.CodeInvalidResult {
		t.Errorf("a file that was not uploaded: %+v", e)
	}
	k.say(fmt.Sprintf(result, 4, `{"name":"a"}`))
	for hear[*wire.OK](k).Ref.Value != 4 {
	}
	if a := x.ask("GET", wire.ArtifactPath(held.Task.ID, "a"), ""); a.body != "abc" {
		t.Errorf("the file: %d %s", a.status, a.body)
	}
}

// cuts are what power cuts in the middle of file operations leave of a disk.
type cuts struct {
	mu    sync.Mutex
	disk  *vfs.MemFS
	steps int
	// acked is what a client has been told so far.
	acked []ackedFile
	left  []cut
}

type ackedFile struct {
	task    *wire.Task
	token   wire.Token
	content string
	// ended: the result of the task was taken.
	ended bool
}

type cut struct {
	fs    vfs.FS
	acked []ackedFile
}

// String and MaybeError implement errorfs.Injector. Each third operation on a file or directory of
// artifacts, and each fortieth elsewhere, has a cut before it.
func (c *cuts) String() string { return "(cuts)" }

func (c *cuts) MaybeError(op errorfs.Op) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	every := 40
	if strings.Contains(op.Path, "artifacts") {
		every = 3
	}
	if c.steps++; c.steps%every == 0 && len(c.left) < 60 {
		keeps := []int{0, 50, 100}[c.steps%3]
		fs := c.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keeps, RNG: rand.New(rand.NewPCG(uint64(c.steps), 1))})
		c.left = append(c.left, cut{fs, slices.Clone(c.acked)})
	}
	return nil
}

func (c *cuts) ack(f ackedFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked = append(c.acked, f)
}

// What a client was told is there after a power cut at any file operation: an uploaded file can be
// named, a named one can be got, whole. When the tasks have ended, no other file is left.
func TestNoAcknowledgedFileIsLostInAPowerCut(t *testing.T) {
	c := &cuts{disk: vfs.NewCrashableMem()}
	open := func(fs vfs.FS) *site {
		s, err := Open(Options{DataDir: "data", FS: fs, Listen: "127.0.0.1:0", Log: zerolog.Nop(), MemoryBytes: 128 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return newSite(t, s)
	}
	x := open(errorfs.Wrap(c.disk, c))
	for i := range 12 {
		task, token := x.claimed("")
		f := ackedFile{task: task, token: token, content: strings.Repeat(string(rune('a'+i)), 1+i*i*700)}
		if a := x.upload(task, token, "a", f.content); a.status != http.StatusOK {
			t.Fatalf("upload: %d %s", a.status, a.body)
		}
		c.ack(f)
		if i%3 == 0 {
			continue
		}
		if a := x.upload(task, token, "unnamed", "x"); a.status != http.StatusOK {
			t.Fatalf("upload: %d %s", a.status, a.body)
		}
		if a := x.finish(task, `,"artifacts":[{"name":"a"},{"name":"b","contentBase64":"AAAA"}]`); a.status != http.StatusOK {
			t.Fatalf("result: %d %s", a.status, a.body)
		}
		f.ended = true
		c.ack(f)
	}
	x.close()
	checked := 0
	for n, left := range c.left {
		y := open(left.fs)
		for _, f := range left.acked {
			if !f.ended {
				if a := y.finish(f.task, `,"leaseToken":"`+f.token.String()+`","artifacts":[{"name":"a"}]`); a.status != http.StatusOK {
					t.Fatalf("cut %d: the result that names an acknowledged file: %d %s", n, a.status, a.body)
				}
			}
			if a := y.ask("GET", wire.ArtifactPath(f.task.ID, "a"), ""); a.body != f.content {
				t.Fatalf("cut %d: a file of %d bytes is %d %.60q", n, len(f.content), a.status, a.body)
			}
			if f.ended {
				y.filesAre(f.task.ID, 2)
			}
			checked++
		}
		y.onlyNamedFiles()
		y.close()
	}
	if len(c.left) < 40 || checked < 100 {
		t.Errorf("%d cuts, %d files checked", len(c.left), checked)
	}
}

// onlyNamedFiles waits until each task that has ended has the files that its result names and no
// other.
func (x *site) onlyNamedFiles() {
	x.t.Helper()
	driver := x.server.artifacts.Driver
	var left []string
	for until := time.Now().Add(patience); time.Now().Before(until); runtime.Gosched() {
		left = nil
		err := driver.Tasks(func(id wire.TaskID) bool {
			files, err := driver.Files(id)
			known, readErr := x.server.store.ReadFiles(id)
			if err != nil || readErr != nil {
				x.t.Fatal(err, readErr)
			}
			for _, file := range files {
				if !known.Needs(file) {
					left = append(left, id.String()+"/"+file)
				}
			}
			return true
		})
		if err != nil {
			x.t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
	}
	x.t.Fatalf("nobody needs %v", left)
}

// smallSpace has no byte free.
type smallSpace struct{ vfs.FS }

func (smallSpace) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{TotalBytes: 1 << 40}, nil
}
