package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/internal/httpapi"
	"codeq/wire"
)

// plainRequest is a request to a route that a trick is played with.
type plainRequest struct{ method, path, query, body string }

func (r *plainRequest) target() string { return r.path + r.query }

// head is the request line and the headers that must be there, and what more
// says; it ends in front of the empty line.
func (r *plainRequest) head(target, more string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s", r.method, target, more)
}

// text is the whole request, with a body of that length.
func (r *plainRequest) text(target, more string) string {
	return r.head(target, more) + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(r.body), r.body)
}

// parts cuts a text into single bytes, each for a write of its own.
func parts(text string) []string { return strings.Split(text, "") }

// said is what a raw answer comes down to. A code of "" is an answer that is no
// refusal of the API: a success, or net/http on what is no HTTP.
type said struct {
	status int
	code   wire.Code
}

var (
	nothing   = said{404, wire.CodeNotFound}
	badMethod = said{405, wire.CodeMethodNotAllowed}
	badBody   = said{400, wire.CodeInvalidBody}
	notHere   = said{403, wire.CodeForbiddenHost}
	tooLarge  = said{413, wire.CodeTooLarge}
	// noHTTP is what net/http itself has to say.
	noHTTP = said{400, ""}
)

// trick is a way to write a request. It sends what say has, in writes of their
// own, and must be answered as the plain request is, or with want.
type trick struct {
	name string
	say  func(r *plainRequest) []string
	// want is nil for the answer of the plain request.
	want func(r *plainRequest) said
	// answers is how many come; 0 is one.
	answers int
	// applies leaves routes out; nil leaves out none.
	applies func(r *plainRequest) bool
}

// one is a trick in one write.
func one(text func(r *plainRequest) string) func(*plainRequest) []string {
	return func(r *plainRequest) []string { return []string{text(r)} }
}

// target is a trick with the target of the request.
func target(change func(r *plainRequest) string) func(*plainRequest) []string {
	return one(func(r *plainRequest) string { return r.text(change(r), "") })
}

// headers is a trick with more headers.
func headers(more string) func(*plainRequest) []string {
	return one(func(r *plainRequest) string { return r.text(r.target(), more) })
}

// body is a trick with headers that describe a body, and the body.
func body(more, text string) func(*plainRequest) []string {
	return one(func(r *plainRequest) string { return r.head(r.target(), more) + "\r\n" + text })
}

// badBodyTo is a trick with dots in place of a name in the path, and a body that is no
// JSON: the path is judged first.
func badBodyTo(name string) func(*plainRequest) []string {
	return one(func(r *plainRequest) string {
		bad := *r
		bad.path, bad.body = strings.Replace(r.path, "/"+name, "/%2e%2e", 1), "no"
		return bad.text(bad.target(), "")
	})
}

func always(want said) func(*plainRequest) said { return func(*plainRequest) said { return want } }

func chunked(text string) string {
	return fmt.Sprintf("%x;ext=1\r\n%s\r\n0\r\nTrailer: x\r\n\r\n", len(text), text)
}

func readsBody(r *plainRequest) bool {
	return (r.method == "POST" || r.method == "PUT") && !isUpload(r) && !strings.HasSuffix(r.path, "/pause") && !strings.HasSuffix(r.path, "/resume")
}

// isUpload tells the one route whose body is looked at only for a delivery, and may be of any length.
func isUpload(r *plainRequest) bool {
	return r.method == "PUT" && strings.HasSuffix(r.path, "/artifacts/raw")
}

func namesTask(r *plainRequest) bool { return strings.Contains(r.path, rawID) }

func namesQueue(r *plainRequest) bool { return strings.Contains(r.path, "/queues/raw") }

func belowBase(r *plainRequest) bool { return strings.HasPrefix(r.path, "/v1/") }

// rawID stands for the id of a task in the paths.
const rawID = "01890a5d-ac96-774b-bcce-b3020abcdef0"

var tricks = []trick{
	{name: "a chain of headers", say: headers(strings.Repeat("X-Filler: y\r\n", 100))},
	{name: "a hundred names of headers", say: one(func(r *plainRequest) string {
		var more strings.Builder
		for n := range 100 {
			fmt.Fprintf(&more, "X-H%d: %d\r\n", n, n)
		}
		return r.text(r.target(), more.String())
	})},
	{name: "headers of odd bytes", say: headers("X-Request-Id: \xff\xfe\r\nUser-Agent: \u202e\r\nReferer: %00\r\n")},
	{name: "other media types", say: headers("Content-Type: text/plain; charset=utf-7\r\nAccept: image/png\r\nAccept-Encoding: br\r\n")},
	{name: "another method in a header", say: headers("X-HTTP-Method-Override: DELETE\r\nX-Original-URL: /nowhere\r\n")},
	{name: "somebody else's address", say: headers("X-Forwarded-For: 127.0.0.1\r\nForwarded: for=127.0.0.1;host=y\r\n")},
	{name: "an absolute target", say: target(func(r *plainRequest) string { return "http://127.0.0.1" + r.target() })},
	{name: "an absolute target on another host", want: always(notHere), say: target(func(r *plainRequest) string { return "http://elsewhere.example:1" + r.target() })},
	{name: "the old protocol", say: one(func(r *plainRequest) string {
		return fmt.Sprintf("%s %s HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s", r.method, r.target(), len(r.body), r.body)
	})},
	{name: "the old protocol without a host", want: always(notHere), say: one(func(r *plainRequest) string {
		return fmt.Sprintf("%s %s HTTP/1.0\r\n\r\n", r.method, r.target())
	})},
	{name: "lines that end without a return", say: one(func(r *plainRequest) string {
		return strings.ReplaceAll(r.head(r.target(), fmt.Sprintf("Content-Length: %d\r\n\r\n", len(r.body))), "\r\n", "\n") + r.body
	})},
	{name: "a letter as an escape", applies: belowBase, say: target(func(r *plainRequest) string {
		return strings.Replace(r.target(), "/codeq/", "/%63odeq/", 1)
	})},
	{name: "a body in chunks", say: one(func(r *plainRequest) string {
		return r.head(r.target(), "Transfer-Encoding: chunked\r\n") + "\r\n" + chunked(r.body)
	}), applies: readsBody},
	{name: "a body that is announced", applies: readsBody, say: headers("Expect: 100-continue\r\n")},
	{name: "byte by byte", say: func(r *plainRequest) []string { return parts(r.text(r.target(), "")) }},
	{name: "three at once", answers: 3, say: one(func(r *plainRequest) string { return strings.Repeat(r.text(r.target(), ""), 3) })},
	{name: "the next one cut off", say: one(func(r *plainRequest) string { return r.text(r.target(), "") + "GET /heal" })},

	{name: "an escaped slash in the path", applies: belowBase, want: always(nothing), say: target(func(r *plainRequest) string {
		return strings.Replace(r.target(), "/codeq/", "%2Fcodeq/", 1)
	})},
	{name: "up and down again", want: always(nothing), say: target(func(r *plainRequest) string { return "/x/.." + r.target() })},
	{name: "up and down again in escapes", want: always(nothing), say: target(func(r *plainRequest) string { return "/x/%2e%2e" + r.target() })},
	{name: "above the root", want: always(nothing), say: target(func(r *plainRequest) string { return "/.." + r.target() })},
	{name: "a dot", want: always(nothing), say: target(func(r *plainRequest) string { return "/." + r.target() })},
	{name: "two slashes", want: always(nothing), say: target(func(r *plainRequest) string { return "/" + r.target() })},
	{name: "a slash at the end", want: always(nothing), say: target(func(r *plainRequest) string { return r.path + "/" + r.query })},
	{name: "an escaped slash at the end", say: target(func(r *plainRequest) string { return r.path + "%2F" + r.query }), want: slashAtTheEnd},
	{name: "a NUL at the end", say: target(func(r *plainRequest) string { return r.path + "%00" + r.query }), want: nulAtTheEnd},
	{name: "a parameter of the path", say: target(func(r *plainRequest) string { return r.path + ";v=1" + r.query }), want: atTheEnd},
	{name: "upper case", want: always(nothing), say: target(func(r *plainRequest) string { return strings.ToUpper(r.path) + r.query })},
	{name: "a backslash", want: always(nothing), say: target(func(r *plainRequest) string { return `/\` + r.target() })},

	{name: "an id in upper case", applies: namesTask, want: always(said{404, wire.CodeTaskNotFound}),
		say: target(func(r *plainRequest) string { return strings.Replace(r.target(), rawID, strings.ToUpper(rawID), 1) })},
	{name: "an id with a slash", applies: namesTask, want: always(said{404, wire.CodeTaskNotFound}),
		say: target(func(r *plainRequest) string { return strings.Replace(r.target(), rawID, "a%2Fb", 1) })},
	{name: "an id of dots", applies: namesTask, want: always(said{404, wire.CodeTaskNotFound}),
		say: target(func(r *plainRequest) string { return strings.Replace(r.target(), rawID, "%2e%2e", 1) })},
	{name: "a queue with a slash", applies: namesQueue, want: always(said{400, wire.CodeInvalidCommand}),
		say: target(func(r *plainRequest) string { return strings.Replace(r.target(), "/queues/raw", "/queues/a%2Fb", 1) })},
	{name: "a queue of dots", applies: namesQueue, want: always(said{400, wire.CodeInvalidCommand}),
		say: target(func(r *plainRequest) string { return strings.Replace(r.target(), "/queues/raw", "/queues/%2e%2e", 1) })},

	{name: "an id of dots over a bad body", want: always(said{404, wire.CodeTaskNotFound}),
		applies: func(r *plainRequest) bool { return readsBody(r) && namesTask(r) }, say: badBodyTo(rawID)},
	{name: "a queue of dots over a bad body", want: always(said{400, wire.CodeInvalidCommand}),
		applies: func(r *plainRequest) bool { return readsBody(r) && namesQueue(r) }, say: badBodyTo("raw")},

	{name: "a method in lower case", want: always(badMethod), say: one(func(r *plainRequest) string {
		return strings.ToLower(r.method) + strings.TrimPrefix(r.text(r.target(), ""), r.method)
	})},
	{name: "a method of nobody", want: always(badMethod), say: one(func(r *plainRequest) string {
		return "BREW" + strings.TrimPrefix(r.text(r.target(), ""), r.method)
	})},

	{name: "a body too large", applies: func(r *plainRequest) bool { return !isUpload(r) }, want: always(tooLarge), say: body(fmt.Sprintf("Content-Length: %d\r\n", wire.MaxHTTPBodyBytes+1), "")},
	{name: "chunks of no size", applies: readsBody, want: always(badBody), say: body("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n")},
	{name: "chunks of a negative size", applies: readsBody, want: always(badBody), say: body("Transfer-Encoding: chunked\r\n", "-1\r\n{}\r\n0\r\n\r\n")},
	{name: "chunks of a size of twenty digits", applies: readsBody, want: always(badBody), say: body("Transfer-Encoding: chunked\r\n", "fffffffffffffffffff1\r\n{}\r\n0\r\n\r\n")},
	{name: "a chunk longer than it says", applies: readsBody, want: always(badBody), say: body("Transfer-Encoding: chunked\r\n", "1\r\n{}\r\n0\r\n\r\n")},
	{name: "a length and chunks", applies: readsBody, say: one(func(r *plainRequest) string {
		return r.head(r.target(), "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n") + "\r\n" + chunked(r.body)
	})},
	{name: "the same length twice", applies: readsBody, say: one(func(r *plainRequest) string {
		return r.text(r.target(), fmt.Sprintf("Content-Length: %d\r\n", len(r.body)))
	})},

	{name: "two lengths", want: always(noHTTP), say: body("Content-Length: 2\r\nContent-Length: 3\r\n", "{} ")},
	{name: "a negative length", want: always(noHTTP), say: body("Content-Length: -1\r\n", "")},
	{name: "a length of letters", want: always(noHTTP), say: body("Content-Length: two\r\n", "{}")},
	{name: "another coding", want: always(said{501, ""}), say: body("Transfer-Encoding: gzip\r\n", "{}")},
	{name: "two codings", want: always(said{501, ""}), say: body("Transfer-Encoding: gzip, chunked\r\n", chunked("{}"))},
	{name: "chunks said twice", want: always(said{501, ""}), say: body("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunked("{}"))},
	{name: "chunks said twice in a line", want: always(said{501, ""}), say: body("Transfer-Encoding: chunked, chunked\r\n", chunked("{}"))},
	{name: "two hosts", want: always(noHTTP), say: headers("Host: y\r\n")},
	{name: "no host", want: always(noHTTP), say: one(func(r *plainRequest) string {
		return fmt.Sprintf("%s %s HTTP/1.1\r\n\r\n", r.method, r.target())
	})},
	{name: "a space in front of the colon", want: always(noHTTP), say: headers("X-Request-Id : y\r\n")},
	{name: "a NUL in a header", want: always(noHTTP), say: headers("X-Request-Id: a\x00b\r\n")},
	{name: "a header without a name", want: always(noHTTP), say: headers(": y\r\n")},
	{name: "a line without a colon", want: always(noHTTP), say: headers("nonsense\r\n")},
	{name: "a bad escape", want: always(noHTTP), say: target(func(r *plainRequest) string { return r.path + "%zz" })},
	{name: "a space in the target", want: always(noHTTP), say: target(func(r *plainRequest) string { return r.path + " x" })},
	{name: "no slash", want: always(noHTTP), say: target(func(r *plainRequest) string { return r.path[1:] })},
	{name: "a protocol of the future", want: always(said{505, ""}), say: one(func(r *plainRequest) string {
		return fmt.Sprintf("%s %s HTTP/7.3\r\nHost: 127.0.0.1\r\n\r\n", r.method, r.target())
	})},
	{name: "a head too large", want: always(said{431, ""}), say: headers("X-Filler: " + strings.Repeat("y", maxHeaderBytes+8<<10) + "\r\n")},
}

// atTheEnd is the answer when something hangs at the end of a path: it belongs to
// the name if the path ends with one.
func atTheEnd(r *plainRequest) said {
	switch {
	case strings.HasSuffix(r.path, rawID), strings.HasSuffix(r.path, "/artifacts/raw"):
		return said{404, wire.CodeTaskNotFound}
	case r.path == "/v1/codeq/tasks/batch", r.path == "/v1/codeq/tasks/claim":
		return badMethod // that is the path of a task now
	case strings.HasSuffix(r.path, "/queues/raw"):
		return said{400, wire.CodeInvalidCommand}
	case strings.HasSuffix(r.path, "/limits/raw"):
		return said{status: 200} // that is the name of another tenant
	case strings.HasSuffix(r.path, "/webhooks/raw"), strings.HasSuffix(r.path, "/webhooks/secret"):
		return said{400, wire.CodeInvalidArgument}
	}
	return nothing
}

// nulAtTheEnd is atTheEnd for what no name has.
func nulAtTheEnd(r *plainRequest) said {
	if strings.HasSuffix(r.path, "/limits/raw") {
		return said{400, wire.CodeInvalidArgument}
	}
	return slashAtTheEnd(r)
}

// slashAtTheEnd is atTheEnd for what a name has in its middle only.
func slashAtTheEnd(r *plainRequest) said {
	if strings.HasSuffix(r.path, "/artifacts/raw") {
		return said{400, wire.CodeInvalidArgument}
	}
	return atTheEnd(r)
}

// rawBodies are good bodies for the routes that need one.
var rawBodies = map[string]string{
	"/tasks": `{"command":"raw","payload":1}`, "/tasks/batch": `{"tasks":[{"command":"raw","payload":1}]}`,
	"/tasks/batch/results": `{"results":[{"taskId":"x","result":{}}]}`, "/result": `{"result":{}}`, "/move": `{"toPriority":1}`,
	"/tasks/claim": `{"commands":["none"]}`, "/tasks/claim/batch": `{"commands":["none"]}`,
	"/admin/tasks/cleanup": `{"before":"2001-01-01T00:00:00Z"}`,
}

// rawRequest is a good request to a route.
func rawRequest(route string) *plainRequest {
	method, pattern, _ := strings.Cut(route, " ")
	r := &plainRequest{method: method, path: strings.NewReplacer("{id}", rawID, "{session}", unknownID, "{command}", "raw", "{tenant}", "raw", "{name}", "raw", "{artifact}", "raw", "{node}", "raw").Replace(pattern)}
	if method == "POST" || method == "PUT" {
		r.body = "{}"
		for end, text := range rawBodies {
			if strings.TrimPrefix(r.path, "/v1/codeq") == end || (end == "/result" || end == "/move") && strings.HasSuffix(r.path, end) {
				r.body = text
			}
		}
	}
	if strings.HasSuffix(r.path, "/queues/raw/tasks") {
		r.query = "?state=ready"
	}
	return r
}

// raw sends a text and reads the answers to it.
func (x *site) raw(r *plainRequest, writes []string, answers int) (all []said, err error) {
	conn, err := net.Dial("tcp", x.server.Addr())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	for _, text := range writes {
		// A server that has heard enough may close its side in the middle.
		if _, err := io.WriteString(conn, text); err != nil {
			break
		}
	}
	in := bufio.NewReader(conn)
	for len(all) < answers {
		response, err := http.ReadResponse(in, &http.Request{Method: r.method})
		if err != nil {
			return all, fmt.Errorf("answer %d: %w", len(all)+1, err)
		}
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return all, fmt.Errorf("body of answer %d: %w", len(all)+1, err)
		}
		if response.StatusCode >= 200 {
			var e struct{ Code wire.Code }
			if response.StatusCode >= 400 && response.Header.Get("Content-Type") == "application/json" {
				if err := json.Unmarshal(text, &e); err != nil {
					return all, fmt.Errorf("%q: %w", text, err)
				}
			}
			all = append(all, said{response.StatusCode, e.Code})
		}
	}
	return all, nil
}

// Every route, asked in every odd way: each is answered as the plain request or
// refused by its rule, and a session and the next connection notice nothing.
func TestTricksWithPathsAndHeadersOnEveryRoute(t *testing.T) {
	s, err := Open(Options{DataDir: "data", FS: vfs.NewMem(), Listen: "127.0.0.1:0", Log: zerolog.Nop(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, s)
	bystander := x.dial()
	for _, route := range httpapi.Routes() {
		r := rawRequest(route)
		plain, err := x.raw(r, []string{r.text(r.target(), "")}, 1)
		if err != nil {
			t.Fatalf("%s: %v", route, err)
		}
		for _, trick := range tricks {
			if trick.applies != nil && !trick.applies(r) {
				continue
			}
			want := plain[0]
			if trick.want != nil {
				want = trick.want(r)
			}
			n := max(trick.answers, 1)
			got, err := x.raw(r, trick.say(r), n)
			if err != nil {
				t.Errorf("%s, %s: %v", route, trick.name, err)
				continue
			}
			for _, answer := range got {
				if answer != want {
					t.Errorf("%s, %s: answered %v, want %v", route, trick.name, answer, want)
				}
			}
		}
		bystander.say(`{"type":"enqueue","ref":1,"command":"bystander","payload":1}`)
		hear[*wire.OK](bystander)
	}
}
