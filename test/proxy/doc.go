// Package proxy tries the files of deploy/proxy: the proxy itself runs with them in front of the built
// program, and a producer, a worker with its WebSocket, a reader of events and a browser work through it.
// make deploy-test runs it, because it needs the proxies.
package proxy
