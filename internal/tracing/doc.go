// Package tracing makes OpenTelemetry spans of what happens to tasks, and sends them to a
// collector over OTLP. It learns of it as an observer of events, which come once they are
// durable, so it is on no request's path, and a server without a collector has none of it.
//
// The ids of spans follow from the id of the task and the number of the delivery. So nothing is
// kept or looked up to find the parent of a span, also over restarts of the server, and the
// worker of a delivery and the callback of a task get the right parent before its span is made:
//
//	the producer's span
//	└ create    from the enqueue to the sync
//	  └ deliver    one for each delivery, with a link to that of the delivery before
//	    └ process    from the grant to the end of the delivery
//	      ├ settle    the worker's answer, from its receipt to the sync
//	      ├ the worker's own spans
//	      └ create    the callback, if that delivery ended the task
//
// A task whose producer has no trace begins one, whose id is that of the task.
package tracing
