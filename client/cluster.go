package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"codeq/wire"
)

const clusterPath = apiPath + "/admin/cluster"

// Cluster asks the leader how the nodes of its cluster are. The token needs the scope
// codeq:admin:all, as for all that is about the cluster.
func (c *Client) Cluster(ctx context.Context) (*wire.ClusterStatus, error) {
	return ask(ctx, c, call{method: http.MethodGet, path: clusterPath}, "the cluster", decoded[wire.ClusterStatus])
}

// JoinToken makes a token with which a machine becomes a node of the cluster. It counts once,
// for life.
func (c *Client) JoinToken(ctx context.Context, life time.Duration) (string, error) {
	path := fmt.Sprintf("%s/tokens?expiresInSeconds=%d", clusterPath, int64(life/time.Second))
	made, err := ask(ctx, c, call{method: http.MethodPost, path: path, remedy: repeatable}, "the token", decoded[struct{ Token string }])
	if err != nil {
		return "", err
	}
	return made.Token, nil
}

// RemoveNode takes a node out of the cluster. It is named by its id, the begin of that, or its
// address.
func (c *Client) RemoveNode(ctx context.Context, node string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: clusterPath + "/nodes/" + url.PathEscape(node), remedy: repeatable})
	return err
}

// TransferLead has another node lead, which is named as for RemoveNode; "" leaves the choice to
// the cluster. It returns when that node was told.
func (c *Client) TransferLead(ctx context.Context, node string) error {
	path := clusterPath + "/transfer"
	if node != "" {
		path += "?node=" + url.QueryEscape(node)
	}
	_, err := c.do(ctx, call{method: http.MethodPost, path: path, remedy: repeatable})
	return err
}
