package host

import _ "embed"

import _ "embed"

import _ "embed"

import _ "embed"

import _ "embed"

import _ "embed"

// ABI is the C header of what generated code and its executor share.
//
//go:embed abi.h
var ABI string

// Offsets of struct group and struct lane, in bytes (abi.h holds them against the structs).
const (
	groupBuffers      = 0
	groupThreadgroups = 8
	groupMemory       = 16

	exchangeA        = 0
	exchangeB        = 1024
	exchangeC        = 2048
	exchangeArgument = 3072
	exchangeSite     = 3200

	laneExchange = 0
	laneIndex    = 32
)

// finished is the site of a thread that has returned.
const finished = -1

// attribute is a value that a parameter of a kernel may have by an attribute.
type attribute struct {
	lane   bool // of struct lane; else of struct group
	offset int
	parts  int // 3: has x, y, z
}

// attributes are those that kernels have, by Metal's names.
var attributes = map[string]attribute{
	"threadgroup_position_in_grid":        {false, 24, 3},
	"threads_per_threadgroup":             {false, 36, 3},
	"threadgroups_per_grid":               {false, 48, 3},
	"threads_per_grid":                    {false, 60, 3},
	"dispatch_threads_per_threadgroup":    {false, 72, 3},
	"simdgroups_per_threadgroup":          {false, 84, 1},
	"dispatch_simdgroups_per_threadgroup": {false, 88, 1},
	"thread_position_in_grid":             {true, 8, 3},
	"thread_position_in_threadgroup":      {true, 20, 3},
	"thread_index_in_simdgroup":           {true, 32, 1},
	"simdgroup_index_in_threadgroup":      {true, 36, 1},
	"thread_index_in_threadgroup":         {true, 40, 1},
	// threads_per_simdgroup, quadgroup_index_in_threadgroup and thread_index_in_quadgroup
	// are computed.
}
