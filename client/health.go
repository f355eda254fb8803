package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// VersionAnswer is what a server says about itself, and the answer as it came.
type VersionAnswer struct {
	Version string
	Raw     []byte
}

// Version reads the server's version.
func (c *Client) Version(ctx context.Context) (*VersionAnswer, error) {
	answer, err := c.do(ctx, call{method: http.MethodGet, path: "/version"})
	if err != nil {
		return nil, err
	}
	var said struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(answer.body, &said); err != nil {
		return nil, answer.misunderstood("the version", err)
	}
	return &VersionAnswer{Version: said.Version, Raw: answer.body}, nil
}

// ReadyAnswer is what a server says that hands out work, and the answer as it came.
type ReadyAnswer struct {
	// Durability is what an answer survives, DiskGuard "ok" or what is refused for lack
	// of space.
	Durability string `json:"durability"`
	DiskGuard  string `json:"diskGuard"`
	Shards     int    `json:"shards"`
	Raw        []byte `json:"-"`
}

// Ready asks whether the server hands out work, and waits up to waitFor until it does.
// One that starts or stops is a *wire.Error with the code draining, one whose disk is
// nearly full has the code storage_full, and one that is not there is an
// *UnreachableError. No token is needed.
func (c *Client) Ready(ctx context.Context, waitFor time.Duration) (*ReadyAnswer, error) {
	var said *ReadyAnswer
	err := c.persist(ctx, waitReady, waitFor, func(time.Duration) error {
		answer, err := c.do(ctx, call{method: http.MethodGet, path: "/readyz"})
		if err != nil {
			return err
		}
		ready := &ReadyAnswer{Raw: answer.body}
		if err := json.Unmarshal(answer.body, ready); err != nil {
			return answer.misunderstood("whether it is ready", err)
		}
		said = ready
		return nil
	})
	return said, err
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
