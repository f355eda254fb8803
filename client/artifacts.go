package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"codeq/wire"
)

// storeFor is how long a server may take to make a file durable, once all of it was sent.
const storeFor = 5 * time.Minute

// Artifacts lists the artifacts of a task that has ended.
func (c *Client) Artifacts(ctx context.Context, id wire.TaskID) ([]wire.Artifact, error) {
	return ask(ctx, c, call{method: http.MethodGet, path: apiPath + "/tasks/" + id.String() + "/artifacts"}, "the artifacts", wire.ParseArtifacts)
}

// Artifact opens a file that the server keeps, by the name of the artifact; ctx bounds the whole.
// The caller must read and close it. A reader that gets io.EOF has all of it.
func (c *Client) Artifact(ctx context.Context, id wire.TaskID, name string) (io.ReadCloser, error) {
	response, err := c.open(ctx, call{method: http.MethodGet, path: wire.ArtifactPath(id, name)})
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// File is a file to be uploaded.
type File struct {
	// Name is that of the artifact: a path such as log.txt or plots/1.png.
	Name string
	// ContentType is the media type; it may be empty.
	ContentType string
	// Content is read from its begin, again if the request is repeated.
	Content   io.ReadSeeker
	SizeBytes int64
}

// Upload sends a file of the delivery to the server, which has it on disk when Upload returns. The
// file becomes an artifact of the task if the outcome of this delivery names it: see
// Outcome.With. A second file of the same name replaces the first. While the server is not
// there, Upload tries again until ctx ends.
func (c *Client) Upload(ctx context.Context, delivery wire.TaskRef, f *File) (a *wire.Artifact, err error) {
	if problem := wire.ArtifactNameProblem(f.Name); problem != "" {
		return nil, wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf("the name of artifact %q %s", f.Name, problem))
	}
	err = c.persist(ctx, keyed, waitForever, func(time.Duration) (err error) {
		a, err = ask(ctx, c, call{
			method: http.MethodPut, path: wire.ArtifactPath(delivery.TaskID, f.Name), waitFor: storeFor, remedy: repeatable,
			file: f, lease: delivery.Token,
		}, "an artifact", wire.ParseArtifact)
		return err
	})
	return a, err
}

// Upload is Client.Upload for this delivery. It may be called from any goroutine until the
// handler returns, by a handler of a Worker.
func (d Delivery) Upload(ctx context.Context, f *File) (*wire.Artifact, error) {
	if d.upload == nil {
		return nil, errors.New("only a delivery of a worker has uploads")
	}
	return d.upload(ctx, f)
}

// With adds to a completion or a failure the artifacts that the task has then: those that Upload
// has returned, and links. Other outcomes stay as they are.
func (o Outcome) With(artifacts ...wire.Artifact) Outcome {
	if o.Kind == Completed || o.Kind == Failed {
		o.artifacts = append(o.artifacts[:len(o.artifacts):len(o.artifacts)], artifacts...)
		for i := range o.artifacts {
			if o.artifacts[i].File != "" {
				o.artifacts[i] = wire.Artifact{Name: o.artifacts[i].Name} // the server knows the rest
			}
		}
	}
	return o
}

// addFile makes the request one that sends a file.
func (in *call) addFile(request *http.Request) error {
	if _, err := in.file.Content.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the file from its begin: %w", err)
	}
	request.Body, request.ContentLength = io.NopCloser(in.file.Content), in.file.SizeBytes
	if in.file.SizeBytes == 0 {
		request.Body = http.NoBody
	}
	if in.file.ContentType != "" {
		request.Header.Set("Content-Type", in.file.ContentType)
	}
	if !in.lease.IsZero() {
		request.Header.Set(wire.LeaseTokenHeader, in.lease.String())
	}
	return nil
}
