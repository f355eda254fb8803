// Command image makes a container image of the program, without a daemon and without another image
// below it:
//
//	image -version 0.1.0 -commit 0123456789ab -time 1700000000 [-only linux/amd64] -out bin/image
//
// It has the program, the certificates of the public authorities, which callbacks and S3 need, and an
// empty directory for the data; no shell and no user but the number 65532. Its bytes depend on the
// sources and these arguments alone, so its digest names them. What is made is an OCI layout, and with
// -unpack DIR also the files of the image for this machine, as a container has them.
//
// main carries everything; one goroutine runs it.
package main
