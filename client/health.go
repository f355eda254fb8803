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

// ReadyAnswer describes a server that is ready.
type ReadyAnswer struct {
	// Durability says what an acknowledged task survives, in the words of the setting.
	Durability string
	// DiskGuard is "ok", or what the server refuses because the disk is nearly full.
	DiskGuard string
	// Shards is the number of shards.
	Shards int
	// Role is "follower" for a node of a cluster that passes requests to the leader, and says
	// nothing of the others; empty for any other server.
	Role string
}

// Ready asks whether the server delivers tasks, and waits up to waitFor until it does. If
// the server starts or stops, the error is a *wire.Error with the code draining; if its
// disk is nearly full, with the code storage_full. If there is no server, the error is an
// *UnreachableError. Ready needs no token.
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

// Settings reads the settings of the running server as JSON. The token needs the scope
// operator.
func (c *Client) Settings(ctx context.Context) ([]byte, error) {
	answer, err := c.do(ctx, call{method: http.MethodGet, path: apiPath + "/admin/config"})
	if err != nil {
		return nil, err
	}
	return answer.body, nil
}
