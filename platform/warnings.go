package platform

import (
	"fmt"
	"time"
)

// annService is how long a task usually takes, which a worker may tell.
const annService = "farmhand.service"

// warnings tells what of a deployment is valid, and will not go well with the
// times that the platform allows.
func (p *Platform) warnings(s *spec) (list []string) {
	limit := p.config.UpstreamTimeout
	if s.execTimeout == 0 || s.execTimeout > limit {
		list = append(list, fmt.Sprintf("exec_timeout %s is longer than the gateway waits (--upstream-timeout %s): a longer call is answered with 502 and may go on running; raise --upstream-timeout, or lower exec_timeout",
			orNone(s.execTimeout), limit))
	}
	service, err := time.ParseDuration(deref(s.Annotations)[annService])
	if begin := p.cold.long(); err == nil && begin > 0 && begin+service > limit {
		list = append(list, fmt.Sprintf("a cold start (%s) and a task (%s %s) take longer than the gateway waits (--upstream-timeout %s): calls of a function at zero fail; raise --upstream-timeout, keep com.openfaas.scale.min at 1, or post tasks with farmhand submit, which waits for a worker",
			begin.Round(100*time.Millisecond), annService, service, limit))
	}
	return list
}

func orNone(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}
