// Package peer is how the nodes of a cluster know and reach each other.
//
// A node has an id, a certificate whose only name is that id, and the authority that
// signed it, all in the file peer/node.json of its data directory. The file is in no
// backup and no snapshot: whoever has it is that node. A machine becomes a node with a
// token that a node made: the token names the authority by its digest, so the machine
// knows whom it talks to, and a secret that counts once and for a short time.
//
// Nodes talk on one port, by TLS 1.3 with the certificates of both sides. The protocol of
// a connection (ALPN) says what goes over it: the replicated log, requests of clients that
// one node passes to another, or the requests of nodes and of machines that join.
//
// A node that does not lead passes the requests of its clients to the leader, sockets
// included. What the leader must know of a client is in headers Codeq-Peer-*, which are
// taken from a client's request and believed from a node alone.
//
// The package knows neither the log nor the engine. It is one package because all of it shares the
// port, the certificates of both sides and what nodes say of themselves.
package peer
