package client

import (
	"context"
	"net/http"
	"time"
)

// Version reads the server's version.
func (c *Client) Version(ctx context.Context) (string, error) {
	said, err := ask(ctx, c, call{method: http.MethodGet, path: "/version"}, "the version", decoded[struct{ Version string }])
	if err != nil {
		return "", err
	}
	return said.Version, nil
}

// ReadyAnswer is what a server says about itself that hands out work.
type ReadyAnswer struct {
	// Durability is what an answer survives, DiskGuard "ok" or what is refused for lack
	// of space.
	Durability string
	DiskGuard  string
	Shards     int
}

// Ready asks whether the server hands out work, and waits up to waitFor until it does.
// One that starts or stops is a *wire.Error with the code draining, one whose disk is
// nearly full has the code storage_full, and one that is not there is an
// *UnreachableError. No token is needed.
func (c *Client) Ready(ctx context.Context, waitFor time.Duration) (answer *ReadyAnswer, err error) {
	err = c.persist(ctx, waitReady, waitFor, func(time.Duration) (err error) {
		answer, err = ask(ctx, c, call{method: http.MethodGet, path: "/readyz"}, "whether it is ready", decoded[ReadyAnswer])
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// Settings reads the settings that the server was started with, as JSON. The token
// needs the scope operator.
func (c *Client) Settings(ctx context.Context) ([]byte, error) {
	answer, err := c.do(ctx, call{method: http.MethodGet, path: apiPath + "/admin/config"})
	if err != nil {
		return nil, err
	}
	return answer.body, nil
}
