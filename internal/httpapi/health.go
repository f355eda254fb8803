package httpapi

import (
	"fmt"
	"net/http"
	"runtime"

	"codeq/wire"
)

// getHealth answers that the process lives.
func getHealth(*call) answer {
	return okay([]byte(`{"status":"ok"}`))
}

// getReady answers whether the server takes work.
func (a *api) getReady(*call) answer {
	if a.o.Ready != nil && !a.o.Ready() {
		return refuse(drainingError)
	}
	if full := a.grantsStopped(); full != nil {
		ans := refuse(full)
		ans.status = http.StatusServiceUnavailable // probes read it as not ready
		return ans
	}
	return okay(fmt.Appendf(nil, `{"status":"ready","durability":"%s","shards":%d,"diskGuard":"%v","clockDifferenceMs":%d}`,
		a.o.Durability, a.o.Store.Shards(), a.o.Store.Guard().Level(), a.o.NowMs()-a.o.WallMs()))
}

// getVersion answers with the versions of the program and of Go.
func (a *api) getVersion(*call) answer {
	body := wire.AppendQuoted([]byte(`{"version":`), a.o.Version)
	body = wire.AppendQuoted(append(body, `,"go":`...), runtime.Version())
	return okay(append(body, '}'))
}

// getConfig answers with the settings of the server.
func (a *api) getConfig(*call) answer {
	return okay(a.o.Settings)
}
