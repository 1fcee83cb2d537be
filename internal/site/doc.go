// Package site makes a web site of the documentation, README and docs/, and says which of its links lead nowhere. Its command make
// (make site) writes the site; a test checks the links in every run. The site needs no network and has no scripts.
package site
