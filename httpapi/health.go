package httpapi

import (
	"net/http"
	"runtime"
	"strconv"

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
	if a.grantsStopped() {
		ans := refuse(noGrantError)
		ans.status = http.StatusServiceUnavailable // probes read it as not ready
		return ans
	}
	body := append([]byte(nil), `{"status":"ready","durability":`...)
	body = wire.AppendQuoted(body, a.o.Durability)
	body = append(body, `,"shards":`...)
	body = strconv.AppendInt(body, int64(a.o.Store.Shards()), 10)
	body = append(body, `,"diskGuard":`...)
	body = wire.AppendQuoted(body, a.o.Store.Guard().Level().String())
	body = append(body, `,"clockDifferenceMs":`...)
	body = strconv.AppendInt(body, a.o.NowMs()-a.o.WallMs(), 10)
	return okay(append(body, '}'))
}

// getVersion answers with the versions of the program and of Go.
func (a *api) getVersion(*call) answer {
	body := append([]byte(nil), `{"version":`...)
	body = wire.AppendQuoted(body, a.o.Version)
	body = append(body, `,"go":`...)
	body = wire.AppendQuoted(body, runtime.Version())
	return okay(append(body, '}'))
}

// getConfig answers with the settings of the server.
func (a *api) getConfig(*call) answer {
	return okay(a.o.Settings)
}
