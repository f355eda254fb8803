package client

import (
	"context"
	"net/http"
	"net/url"

	"codeq/wire"
)

// Limits reads the limits of a tenant and what is used of them. A tenant without limits is
// no error: its Version is 0.
func (c *Client) Limits(ctx context.Context, tenant string) (*wire.LimitsFigures, error) {
	return c.limits(ctx, call{method: http.MethodGet, path: limitsPath(tenant)})
}

// AllLimits reads the limits of every tenant that has some and that the credential may see.
func (c *Client) AllLimits(ctx context.Context) ([]wire.LimitsFigures, error) {
	return ask(ctx, c, call{method: http.MethodGet, path: apiPath + "/admin/limits"}, "the limits", wire.ParseLimitsList)
}

// SetLimits replaces all limits of a tenant. A limit that is zero is none. With a Version
// that is not that of the limits in force nothing changes, and the error is a *wire.Error
// with the code version_conflict; 0 is any version.
func (c *Client) SetLimits(ctx context.Context, tenant string, change *wire.LimitsChange) (*wire.LimitsFigures, error) {
	return c.limits(ctx, call{method: http.MethodPut, path: limitsPath(tenant), body: wire.AppendLimitsChange(nil, change), remedy: repeatable})
}

// ClearLimits removes all limits of a tenant.
func (c *Client) ClearLimits(ctx context.Context, tenant string) (*wire.LimitsFigures, error) {
	return c.limits(ctx, call{method: http.MethodDelete, path: limitsPath(tenant), remedy: repeatable})
}

func limitsPath(tenant string) string { return apiPath + "/admin/limits/" + url.PathEscape(tenant) }

func (c *Client) limits(ctx context.Context, in call) (*wire.LimitsFigures, error) {
	return ask(ctx, c, in, "limits", wire.ParseLimitsFigures)
}
