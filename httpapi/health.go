package httpapi

import (
	"net/http"
	"runtime"
	"strconv"

	"codeq/wire"
)

// getHealth says that the process lives.
func getHealth(*call) answer {
	return answer{status: http.StatusOK, body: []byte(`{"status":"ok"}`)}
}

// getReady says whether work is taken, and on what terms.
func (a *api) getReady(*call) answer {
	if a.o.Ready != nil && !a.o.Ready() {
		return refuse(drainingError())
	}
	if a.grantsStopped() {
		ans := refuse(noGrantError())
		ans.status = http.StatusServiceUnavailable // what probes know for not ready
		return ans
	}
	body := append([]byte(nil), `{"status":"ready","durability":`...)
	body = wire.AppendQuoted(body, a.o.Durability)
	body = append(body, `,"shards":`...)
	body = strconv.AppendInt(body, int64(a.o.Store.Shards()), 10)
	body = append(body, `,"diskGuard":`...)
	body = wire.AppendQuoted(body, a.o.Store.Guard().Level().String())
	// How far the engine's clock is ahead of the wall.
	body = append(body, `,"clockDifferenceMs":`...)
	body = strconv.AppendInt(body, a.o.NowMs()-a.o.WallMs(), 10)
	return answer{status: http.StatusOK, body: append(body, '}')}
}

// getVersion names the program and what it was built with.
func (a *api) getVersion(*call) answer {
	body := append([]byte(nil), `{"version":`...)
	body = wire.AppendQuoted(body, a.o.Version)
	body = append(body, `,"go":`...)
	body = wire.AppendQuoted(body, runtime.Version())
	return answer{status: http.StatusOK, body: append(body, '}')}
}

// getConfig answers with the settings that the server was started with.
func (a *api) getConfig(*call) answer {
	return answer{status: http.StatusOK, body: a.o.Settings}
}
