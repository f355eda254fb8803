package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"codeq/internal/auth"
	"codeq/wire"
)

const (
	clusterPath = base + "/admin/cluster"
	// joinFor is how long a token to join counts, joinAtMost the longest that may be asked for.
	joinFor    = time.Hour
	joinAtMost = 24 * time.Hour
)

// Cluster is the cluster that the server leads. Any goroutine.
type Cluster interface {
	// Status asks every node how it is.
	Status(ctx context.Context) *wire.ClusterStatus
	// Invite makes a token with which a machine becomes a node; it counts once, for life.
	Invite(life time.Duration) (string, error)
	// Remove takes a node out, Transfer hands the lead over, to any other node for "". A node is
	// named by its id, the begin of it, or its address.
	Remove(ctx context.Context, node string) *wire.Error
	Transfer(ctx context.Context, node string) *wire.Error
}

var noCluster = wire.Refuse(wire.CodeNotFound, "this server is no node of a cluster; \"codeq cluster init\" makes one of a server that does not run")

func (a *api) clusterResources() []resource {
	return []resource{
		{clusterPath, []verb{{method: http.MethodGet, scope: auth.ScopeAdminAll, handle: a.getCluster}}},
		{clusterPath + "/tokens", []verb{{method: http.MethodPost, scope: auth.ScopeAdminAll, query: []string{"expiresInSeconds"}, handle: parsed(parseBare, a.postJoinToken)}}},
		{clusterPath + "/transfer", []verb{{method: http.MethodPost, scope: auth.ScopeAdminAll, query: []string{"node"}, handle: parsed(parseBare, a.postTransfer)}}},
		{clusterPath + "/nodes/{node}", []verb{{method: http.MethodDelete, scope: auth.ScopeAdminAll, handle: a.deleteNode}}},
	}
}

func (a *api) getCluster(c *call) answer {
	if a.o.Cluster == nil {
		return refuse(noCluster)
	}
	body, err := json.Marshal(a.o.Cluster.Status(c.r.Context()))
	if err != nil {
		panic(fmt.Sprintf("httpapi: write the status of the cluster: %v", err))
	}
	return okay(body)
}

// postJoinToken makes a token at the leader, to which the machine will talk.
func (a *api) postJoinToken(c *call, _ struct{}) answer {
	if a.o.Cluster == nil {
		return refuse(noCluster)
	}
	seconds, refusal := c.integer("expiresInSeconds", int(joinFor/time.Second), 1, int(joinAtMost/time.Second))
	if refusal != nil {
		return refuse(refusal)
	}
	token, err := a.o.Cluster.Invite(time.Duration(seconds) * time.Second)
	if err != nil {
		return refuse(wire.Refuse(wire.CodeClusterRefused, err.Error()))
	}
	body := wire.AppendQuoted([]byte(`{"token":`), token)
	return okay(fmt.Appendf(body, `,"expiresInSeconds":%d}`, seconds))
}

func (a *api) postTransfer(c *call, _ struct{}) answer {
	if a.o.Cluster == nil {
		return refuse(noCluster)
	}
	if refusal := a.o.Cluster.Transfer(c.r.Context(), c.query.Get("node")); refusal != nil {
		return refuse(refusal)
	}
	return okay([]byte("{}"))
}

func (a *api) deleteNode(c *call) answer {
	if a.o.Cluster == nil {
		return refuse(noCluster)
	}
	if refusal := a.o.Cluster.Remove(c.r.Context(), c.r.PathValue("node")); refusal != nil {
		return refuse(refusal)
	}
	return answer{status: http.StatusNoContent}
}
