// Package policies holds the policy files that are shipped.
package policies

import _ "embed"

// General is a policy that serves farms of many kinds, in the format of package learned:
// what a farm whose policy is learned begins with. How it was made and what it comes to:
// docs/RESULTS-general.md.
//
//go:embed general.safetensors
var General []byte
