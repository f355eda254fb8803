package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"codeq/internal/artifact"
	"codeq/internal/auth"
	"codeq/internal/limit"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// Artifacts are files. The shard gives a number before a file is made and hears of it when it is on
// disk; both messages are about the delivery and refused like all others of it.

func (a *api) artifactResources() []resource {
	return []resource{
		{base + "/tasks/{id}/artifacts", []verb{{method: http.MethodGet, contents: true, holds: anyBytes, handle: a.getArtifacts}}},
		{base + "/tasks/{id}/artifacts/{artifact}", []verb{
			{method: http.MethodGet, contents: true, handle: a.getArtifact},
			{method: http.MethodPut, scope: auth.ScopeResult, streams: true, handle: a.putArtifact},
		}},
	}
}

// putArtifact takes a file of a delivery. It is durable and listed when the answer leaves; it can be
// got once the result names it.
func (a *api) putArtifact(c *call) answer {
	listed, refusal := a.takeUpload(c)
	if refusal != nil {
		a.o.Files.Refused(1)
		return refuse(refusal)
	}
	return okay(wire.AppendArtifact(nil, listed.Artifact))
}

func (a *api) takeUpload(c *call) (*shard.Uploaded, *wire.Error) {
	file, holder, refusal := a.uploadOf(c)
	if refusal == nil {
		refusal = a.tokenMissing(holder)
	}
	if refusal != nil {
		return nil, refusal
	}
	h := shard.Holder{Owner: c.owner(holder), TaskRef: wire.TaskRef{TaskID: c.taskID, Token: holder.Token}}
	begun, refusal := a.upload(&shard.Upload{Holder: h, Begin: 1})
	if refusal != nil {
		return nil, refusal
	}
	room := a.o.Engine.Limits().Room(c.who.Tenant)
	defer room.GiveBack() // from then on the shard counts the file
	if refusal := room.Take(max(c.r.ContentLength, 0)); refusal != nil {
		return nil, refusal
	}
	if begun.Delivery > 1 {
		a.o.Files.Look(c.taskID) // no result can name those of the deliveries before
	}
	file.File = wire.FileName(begun.Delivery, begun.First)
	key := artifact.Key{Task: c.taskID, File: file.File}
	if refusal := a.putFile(c, key, file, room); refusal != nil {
		return nil, refusal
	}
	listed, refusal := a.upload(&shard.Upload{Holder: h, Artifact: file})
	if refusal != nil {
		a.o.Files.Drop(key)
		return nil, refusal
	}
	if listed.Replaced != "" {
		a.o.Files.Drop(artifact.Key{Task: c.taskID, File: listed.Replaced})
	}
	return listed, nil
}

// uploadOf is what the request says of a file, and whose the delivery is.
func (a *api) uploadOf(c *call) (file *wire.Artifact, holder wire.Holder, refusal *wire.Error) {
	file = &wire.Artifact{Name: c.r.PathValue("artifact"), ContentType: c.r.Header.Get("Content-Type")}
	if problem := wire.ContentTypeProblem(file.ContentType); problem != "" {
		return nil, holder, wire.Refuse(wire.CodeInvalidArgument, "Content-Type "+problem)
	}
	if c.r.ContentLength > a.o.Files.MaxBytes {
		return nil, holder, fileTooLarge(a.o.Files.MaxBytes)
	}
	if text := c.r.Header.Get(wire.LeaseTokenHeader); text != "" {
		token, ok := wire.ParseToken(text)
		if !ok || token.IsZero() {
			return nil, holder, wire.Refuse(wire.CodeInvalidArgument,
				wire.LeaseTokenHeader+" must be the 32 lower-case hexadecimal digits that came with the task")
		}
		holder.Token = token
	}
	return file, holder, nil
}

func fileTooLarge(most int64) *wire.Error {
	return wire.Refuse(wire.CodeTooLarge, fmt.Sprintf("an artifact has at most %d bytes on this server", most))
}

// upload asks the shard of a task.
func (a *api) upload(m *shard.Upload) (*shard.Uploaded, *wire.Error) {
	return ask[*shard.Uploaded](a, a.o.Engine.ShardOf(m.TaskID), 0, mailbox.ClassKeep, func(to shard.Asker) shard.Message {
		m.Asker = to
		return m
	})
}

// putFile makes the file of the body, which may take as long as enough of it comes.
func (a *api) putFile(c *call, key artifact.Key, file *wire.Artifact, room *limit.Room) *wire.Error {
	body := newPacedBody(c)
	body.from = http.MaxBytesReader(c.w, c.r.Body, a.o.Files.MaxBytes)
	var from io.Reader = body
	if c.r.ContentLength < 0 {
		from = &roomTaker{body, room}
	}
	size, sum, err := a.o.Files.Put(key, from)
	var tooLarge *http.MaxBytesError
	var refusal *wire.Error
	switch {
	case err == nil:
		file.SizeBytes, file.SHA256 = size, sum
		return c.setReadDeadline(time.Time{})
	case errors.As(err, &tooLarge):
		return fileTooLarge(tooLarge.Limit)
	case errors.As(err, &refusal):
		return refusal
	case body.failed != nil:
		return bodyError(body.failed)
	}
	return a.notStored(err)
}

// roomTaker takes room for a body of unknown length as it comes.
type roomTaker struct {
	io.Reader
	room *limit.Room
}

// Read implements io.Reader.
func (t *roomTaker) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if refusal := t.room.Take(int64(n)); refusal != nil {
		return n, refusal
	}
	return n, err
}

// notStored is why a file could not be made, for a reason that is not the client's.
func (a *api) notStored(err error) *wire.Error {
	var refusal *wire.Error
	switch {
	case errors.Is(err, artifact.ErrFull):
		return noRoomForFile
	case errors.As(err, &refusal):
		return refusal
	}
	a.o.Log.Error().Err(err).Msg("an artifact could not be stored")
	return internalError
}

var noRoomForFile = wire.Refuse(wire.CodeStorageFull, "there is no space for more artifacts; free space there, then try again")

// getArtifacts lists the artifacts of a result.
func (a *api) getArtifacts(c *call) answer {
	_, record, failed := a.resultOf(c)
	if record == nil {
		return failed
	}
	return okay(wire.AppendArtifacts(nil, record.Artifacts))
}

// getArtifact answers with a file, or the parts of it that are asked for. Browsers never show it as
// a page of this server: it has no type, and is to be saved.
func (a *api) getArtifact(c *call) answer {
	task, record, failed := a.resultOf(c)
	if record == nil {
		return failed
	}
	found, refusal := artifactOf(record, c.r.PathValue("artifact"))
	if refusal != nil {
		return refuse(refusal)
	}
	f, err := a.openWhole(c, found)
	if errors.Is(err, artifact.ErrGone) {
		return refuse(artifactGone)
	}
	if err != nil {
		a.o.Log.Error().Str("requestId", c.requestID).Err(err).Msg("an artifact could not be read")
		return refuse(internalError)
	}
	defer func() { _ = f.Close() }() // it was only read
	h, disposition := c.w.Header(), "attachment; filename*=UTF-8''"+url.PathEscape(found.Name)
	if task.TraceParent != "" {
		h.Set("Traceparent", task.TraceParent)
	}
	if a.o.Files.Links != nil && c.r.Method == http.MethodGet && !isConditional(c.r.Header) {
		return a.sendOn(c, found, disposition)
	}
	h.Set("Content-Type", artifact.ContentType)
	h.Set("Content-Disposition", disposition)
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	h.Set("Etag", `"`+found.SHA256+`"`)
	if c.r.Method != http.MethodGet || found.SizeBytes == 0 || !usefulRange.MatchString(c.r.Header.Get("Range")) {
		c.r.Header.Del("Range")
	}
	w := &rangeWriter{ResponseWriter: c.w, status: http.StatusOK}
	http.ServeContent(w, c.r, "", time.UnixMilli(record.CompletedAtMs), f)
	return answer{status: w.status, handedOver: true}
}

// sendOn answers with the address of the file in its storage.
func (a *api) sendOn(c *call, found *wire.Artifact, disposition string) answer {
	at, err := a.o.Files.Links.Link(artifact.Key{Task: c.taskID, File: found.File}, disposition)
	if err != nil {
		a.o.Log.Error().Str("requestId", c.requestID).Err(err).Msg("no address could be made for an artifact")
		return refuse(internalError)
	}
	c.w.Header().Set("Location", at)
	return answer{status: http.StatusTemporaryRedirect}
}

// isConditional reports whether a request names an entity tag or a time. Its storage has other ones.
func isConditional(h http.Header) bool {
	for _, name := range []string{"If-Match", "If-None-Match", "If-Range", "If-Modified-Since", "If-Unmodified-Since"} {
		if h.Get(name) != "" {
			return true
		}
	}
	return false
}

// usefulRange is a Range that net/http answers as RFC 9110 says, of sixteen parts at most, because a
// storage is asked for each. The others are ignored, as RFC 9110 allows: other units, what is
// malformed, the last 0 bytes.
var usefulRange = regexp.MustCompile(`^bytes=[ \t]*` + rangePart + `([ \t]*,[ \t]*` + rangePart + `){0,15}[ \t]*$`)

const rangePart = `([0-9]{1,18}-[0-9]{0,18}|-0*[1-9][0-9]{0,17})`

// openWhole opens a file that has the size it was kept with.
func (a *api) openWhole(c *call, found *wire.Artifact) (io.ReadSeekCloser, error) {
	f, err := a.o.Files.Open(artifact.Key{Task: c.taskID, File: found.File})
	if err != nil {
		return nil, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil && size != found.SizeBytes {
		err = fmt.Errorf("file %s of task %v has %d bytes, and was kept with %d", found.File, c.taskID, size, found.SizeBytes)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

var artifactGone = wire.Refuse(wire.CodeNotFound,
	"the file of this artifact is gone: a server that was restored from a backup has the files only if they were copied as well")

func artifactOf(record *wire.ResultRecord, name string) (*wire.Artifact, *wire.Error) {
	for i := range record.Artifacts {
		switch a := &record.Artifacts[i]; {
		case a.Name != name:
		case a.File == "":
			return nil, wire.Refuse(wire.CodeNotFound, "this artifact is a link: its url says where it is")
		default:
			return a, nil
		}
	}
	return nil, wire.Refuse(wire.CodeNotFound, "the result of the task has no artifact of this name")
}

// rangeWriter notes the status of what net/http answers, and leaves out its text for a range that
// is not in the file: answers of the API are JSON or files.
type rangeWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *rangeWriter) WriteHeader(status int) {
	if w.status = status; status == http.StatusRequestedRangeNotSatisfiable {
		w.Header().Del("Content-Type")
		w.Header().Set("Content-Length", "0")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *rangeWriter) Write(p []byte) (int, error) {
	if w.status == http.StatusRequestedRangeNotSatisfiable {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}
