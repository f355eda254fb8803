package client

import (
	"context"
	"net/http"
	"net/url"

	"codeq/wire"
)

// Endpoints reads the endpoints of the tenant, which get outcomes of its tasks, by name.
func (c *Client) Endpoints(ctx context.Context) ([]wire.EndpointFigures, error) {
	return ask(ctx, c, call{method: http.MethodGet, path: apiPath + "/admin/webhooks"}, "the webhooks", wire.ParseEndpointList)
}

// Endpoint reads one. If there is none of this name, the error is a *wire.Error with the code
// not_found.
func (c *Client) Endpoint(ctx context.Context, name string) (*wire.EndpointFigures, error) {
	return c.endpoint(ctx, http.MethodGet, name, nil)
}

// SetEndpoint makes an endpoint or replaces what it is. The answer has its secret if the request
// gave it one. With a Version that is not that of the endpoint nothing changes, and the error
// is a *wire.Error with the code version_conflict; 0 is any version.
func (c *Client) SetEndpoint(ctx context.Context, name string, change *wire.EndpointChange) (*wire.EndpointFigures, error) {
	return c.endpoint(ctx, http.MethodPut, name, wire.AppendEndpointChange(nil, change))
}

// RotateEndpoint gives an endpoint another secret, which the answer has; with an empty one the
// server makes it. The old secret signs as well for a day.
func (c *Client) RotateEndpoint(ctx context.Context, name, secret string) (*wire.EndpointFigures, error) {
	return c.endpoint(ctx, http.MethodPost, name+"/rotate", wire.AppendRotation(nil, secret))
}

// EnableEndpoint enables an endpoint, and has what waits for it posted now.
func (c *Client) EnableEndpoint(ctx context.Context, name string) (*wire.EndpointFigures, error) {
	return c.endpoint(ctx, http.MethodPost, name+"/enable", nil)
}

// RemoveEndpoint removes an endpoint and returns what it was. What waits for it is not posted.
func (c *Client) RemoveEndpoint(ctx context.Context, name string) (*wire.EndpointFigures, error) {
	return c.endpoint(ctx, http.MethodDelete, name, nil)
}

// TestEndpoint posts a signed message to an endpoint and returns what came of it.
func (c *Client) TestEndpoint(ctx context.Context, name string) (*wire.EndpointTest, error) {
	return ask(ctx, c, call{method: http.MethodPost, path: endpointPath(name + "/test")}, "the answer to a test", wire.ParseEndpointTest)
}

// Redeliver has a callback posted again, and returns its task: another one if it had arrived.
func (c *Client) Redeliver(ctx context.Context, id wire.TaskID) (*wire.Task, error) {
	return c.manage(ctx, id, "redeliver", nil)
}

// endpointPath is the path of an endpoint, or of a verb behind it.
func endpointPath(name string) string {
	return apiPath + "/admin/webhooks/" + (&url.URL{Path: name}).EscapedPath()
}

func (c *Client) endpoint(ctx context.Context, method, name string, body []byte) (*wire.EndpointFigures, error) {
	return ask(ctx, c, call{method: method, path: endpointPath(name), body: body, remedy: repeatable}, "a webhook", wire.ParseEndpointFigures)
}
