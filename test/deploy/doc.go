// Package deploy renders the Helm chart and reads the Compose file of deploy/. Each object that the chart
// makes is decoded into the type of its API, and a member that the type does not have is a failure. What
// the pods of the chart run is run as processes, which become a cluster. The file for Traefik is read by
// Traefik's provider of files, and its rule is tried by Traefik's matcher.
//
// It is a module of its own, because the libraries of Helm and Kubernetes are many times as large as
// codeq. make deploy-test runs it.
package deploy
