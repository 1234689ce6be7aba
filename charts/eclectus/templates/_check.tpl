{{- /*
Errors that the schema cannot express: values that contradict each other, and durations out of their bounds. The
scheduler refuses the same; tests/charts/test_configuration.py compares them.
*/ -}}
{{- define "eclectus.check" -}}
{{- $config := .Values.config }}
{{- $election := $config.leaderElection }}
{{- if and (gt (int .Values.scheduler.replicas) 1) (not $election.leaderElect) }}
{{- fail (printf "config.leaderElection.leaderElect is false, but scheduler.replicas is %d: two schedulers would place the same pods. Set scheduler.replicas to 1 or leaderElect to true." (int .Values.scheduler.replicas)) }}
{{- end }}
{{- with $config.server.address }}
{{- if and (gt (int $.Values.scheduler.replicas) 0) (regexMatch "^(127\\.|::1$|localhost$)" .) }}
{{- fail (printf "config.server.address: %s is reachable only inside the pod, so that its probes would fail. Set it to 0.0.0.0, or to \"::\" on an IPv6-only cluster." .) }}
{{- end }}
{{- end }}
{{- if not (include "eclectus.delegates" .) }}
{{- $loopback := regexMatch "^(127\\.|::1$|localhost$)" (default "127.0.0.1" $config.server.address) }}
{{- if not (or $config.server.allowAnonymous $loopback) }}
{{- fail (printf "config.server.authentication: none would show the pages to everybody who reaches %s. Set it to delegated, or config.server.allowAnonymous to true." $config.server.address) }}
{{- end }}
{{- end }}
{{- if not .Values.operator.enabled }}
{{- if (.Values.operator.dagJobs).enabled }}
{{- fail "operator.dagJobs.enabled is true, but operator.enabled is false: nothing would run DagJobs. Set operator.enabled to true." }}
{{- end }}
{{- if (.Values.operator.copies).namespaces }}
{{- fail "operator.copies.namespaces names namespaces, but operator.enabled is false: nothing would make copies. Set operator.enabled to true." }}
{{- end }}
{{- end }}
{{- include "eclectus.checkBounds" . }}
{{- include "eclectus.checkElection" $config }}
{{- include "eclectus.checkProfiles" $config }}
{{- include "eclectus.checkClashes" . }}
{{- end }}

{{- /* A duration such as 1m30s, or a number of seconds, as a number of seconds. */ -}}
{{- define "eclectus.seconds" -}}
{{- if kindIs "string" . }}
{{- $seconds := 0.0 }}
{{- range regexFindAll "[0-9.]+(ms|s|m|h)" . -1 }}
{{- $number := regexFind "[0-9.]+" . | float64 }}
{{- $seconds = addf $seconds (mulf $number (index (dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0) (regexFind "[a-z]+" .))) }}
{{- end }}
{{- $seconds }}
{{- else }}
{{- . }}
{{- end }}
{{- end }}

{{- define "eclectus.checkBounds" -}}
{{- $config := .Values.config }}
{{- $bounds := .Files.Get "files/duration-bounds.yaml" | fromYaml }}
{{- range $part, $fields := $bounds.process }}
{{- include "eclectus.checkDurations" (dict "path" (printf "config.%s" $part) "values" (get $config $part) "bounds" $fields) }}
{{- end }}
{{- include "eclectus.checkPolicy" (dict "path" "config.learn" "values" $config.learn "policies" $bounds.policies.learn) }}
{{- range $at, $profile := $config.profiles }}
{{- include "eclectus.checkDurations" (dict "path" (printf "config.profiles[%d]" $at) "values" $profile "bounds" $bounds.profile) }}
{{- range $role := list "order" "place" "line" "speculate" "hold" }}
{{- include "eclectus.checkPolicy" (dict "path" (printf "config.profiles[%d].%s" $at $role) "values" (get $profile $role) "policies" (get $bounds.policies $role)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "eclectus.checkPolicy" -}}
{{- if and .values .policies }}
{{- include "eclectus.checkDurations" (dict "path" .path "values" .values "bounds" (get .policies .values.policy)) }}
{{- end }}
{{- end }}

{{- define "eclectus.checkDurations" -}}
{{- if and .values .bounds }}
{{- range $field, $bound := .bounds }}
{{- $given := get $.values $field }}
{{- if and $given (kindIs "string" $given) }}
{{- $seconds := include "eclectus.seconds" $given | float64 }}
{{- if and (hasKey $bound "least") (lt $seconds (float64 $bound.least)) }}
{{- fail (printf "%s.%s: %s is too small; at least %vs" $.path $field $given $bound.least) }}
{{- end }}
{{- if and (hasKey $bound "most") (gt $seconds (float64 $bound.most)) }}
{{- fail (printf "%s.%s: %s is too large; at most %vs" $.path $field $given $bound.most) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "eclectus.checkElection" -}}
{{- $election := .leaderElection }}
{{- $lease := include "eclectus.seconds" (default "15s" $election.leaseDuration) | float64 }}
{{- $renew := include "eclectus.seconds" (default "10s" $election.renewDeadline) | float64 }}
{{- $retry := include "eclectus.seconds" (default "2s" $election.retryPeriod) | float64 }}
{{- $request := include "eclectus.seconds" (dig "requestTimeout" "5s" (default dict .clientConnection)) | float64 }}
{{- if ne $lease (floor $lease) }}
{{- fail (printf "config.leaderElection.leaseDuration: %vs must be whole seconds, as Lease objects store them." $lease) }}
{{- end }}
{{- if ge $renew $lease }}
{{- fail (printf "config.leaderElection.renewDeadline: %vs must be less than leaseDuration, which is %vs." $renew $lease) }}
{{- end }}
{{- if ge (mulf $retry 1.2) $renew }}
{{- fail (printf "config.leaderElection.retryPeriod: %vs times 1.2 must be less than renewDeadline, which is %vs." $retry $renew) }}
{{- end }}
{{- if and $election.leaderElect (not $election.bindFence) (gt $request (subf $lease $renew)) }}
{{- fail (printf "config.clientConnection.requestTimeout: %vs must be at most leaseDuration - renewDeadline = %vs, or two leaders could bind without bindFence." $request (subf $lease $renew)) }}
{{- end }}
{{- end }}

{{- define "eclectus.checkProfiles" -}}
{{- $names := list }}
{{- $modes := list }}
{{- range $at, $profile := .profiles }}
{{- $path := printf "config.profiles[%d]" $at }}
{{- if has $profile.schedulerName $names }}
{{- fail (printf "%s.schedulerName: %s is taken by another profile." $path $profile.schedulerName) }}
{{- end }}
{{- $names = append $names $profile.schedulerName }}
{{- $order := default dict $profile.order }}
{{- if eq (dig "policy" "" $order) "drf" }}
{{- if ne (eq (dig "by" "namespace" $order) "label") (not (empty (get $order "label"))) }}
{{- fail (printf "%s.order.label belongs to by: label, and by: label needs it." $path) }}
{{- end }}
{{- end }}
{{- include "eclectus.checkHold" (dict "path" $path "profile" $profile) }}
{{- $place := default (dict "policy" "rosella") $profile.place }}
{{- if eq $place.policy "rosella" }}
{{- include "eclectus.checkRosella" (dict "path" $path "place" $place) }}
{{- $modes = append $modes (dig "mode" "eclectus" $place) | uniq }}
{{- end }}
{{- end }}
{{- if gt (len $modes) 1 }}
{{- fail "config.profiles: place has mode: paper in one profile and mode: eclectus in another, and they share the learner." }}
{{- end }}
{{- $learn := default dict .learn }}
{{- if and (has "paper" $modes) (eq (dig "mode" "paper" $learn) "eclectus") (eq (dig "policy" "rosella" $learn) "rosella") }}
{{- fail "config.learn.mode: eclectus contradicts the profiles' mode: paper; leave it out here." }}
{{- end }}
{{- end }}

{{- define "eclectus.checkHold" -}}
{{- $hold := default dict .profile.hold }}
{{- if eq (dig "policy" "none" $hold) "delay" }}
{{- if and (not (kindIs "invalid" $hold.skips)) (not (kindIs "invalid" $hold.targetLocality)) }}
{{- fail (printf "%s.hold.targetLocality makes skips, so leave one of the two out." .path) }}
{{- end }}
{{- $sum := include "eclectus.seconds" (ternary $hold.nodeWait 5.0 (hasKey $hold "nodeWait")) | float64 }}
{{- $keys := list }}
{{- range $hold.levels }}
{{- $keys = append $keys .key }}
{{- $sum = addf $sum (include "eclectus.seconds" (ternary .wait 10.0 (hasKey . "wait")) | float64) }}
{{- end }}
{{- if ne (len $keys) (len (uniq $keys)) }}
{{- fail (printf "%s.hold.levels name a label twice." .path) }}
{{- end }}
{{- $isLimited := not (and (hasKey .profile "waitLimit") (kindIs "invalid" .profile.waitLimit)) }}
{{- $limit := include "eclectus.seconds" (default 300.0 .profile.waitLimit) | float64 }}
{{- if and $isLimited (ge $sum $limit) }}
{{- fail (printf "%s.hold: waits of %vs in all, but waitLimit ends every wait after %vs." .path $sum $limit) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "eclectus.checkRosella" -}}
{{- $mode := dig "mode" "eclectus" .place }}
{{- $view := dig "view" (ternary "sample" "full" (eq $mode "paper")) .place }}
{{- if and (eq $view "sample") (get .place "replan") }}
{{- fail (printf "%s.place.replan: re-planning needs the full view; leave replan out or set view: full." .path) }}
{{- end }}
{{- if and (eq $view "full") (or (ne (dig "query" "proportional" .place) "proportional") (ne (int (dig "choices" 2 .place)) 2) (dig "distinct" false .place)) }}
{{- fail (printf "%s.place.view: the full view draws no nodes; leave out query, choices and distinct, or set view: sample." .path) }}
{{- end }}
{{- end }}

{{- /* A combination is refused if the policy of every role that it names is such a one. */ -}}
{{- define "eclectus.checkClashes" -}}
{{- $defaults := dict "order" "fifo" "place" "rosella" "line" "fifo" "hold" "none" }}
{{- $clashes := .Files.Get "files/clashes.yaml" | fromYamlArray }}
{{- range $at, $profile := .Values.config.profiles }}
{{- range $clash := $clashes }}
{{- $refused := true }}
{{- range $role, $known := $clash.policies }}
{{- $givens := list (default (dict "policy" (get $defaults $role)) (get $profile $role)) }}
{{- if eq $role "relieve" }}
{{- $givens = include "eclectus.relief" $profile | fromYamlArray }}
{{- end }}
{{- $isStated := "" }}
{{- range $givens }}
{{- $isStated = print $isStated (include "eclectus.isStated" (dict "known" $known "given" .)) }}
{{- end }}
{{- if not $isStated }}
{{- $refused = false }}
{{- end }}
{{- end }}
{{- if $refused }}
{{- fail (printf "config.profiles[%d].%s: %s." $at $clash.at $clash.problem) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Some text if `known` names the policy `given` with such settings; none if not. */ -}}
{{- define "eclectus.isStated" -}}
{{- if hasKey .known .given.policy }}
{{- $said := get .known .given.policy }}
{{- $found := false }}
{{- range $key, $values := default $said.with $said.unless }}
{{- $found = or $found (and (hasKey $.given $key) (has (get $.given $key) $values)) }}
{{- end }}
{{- if or (not $said) (eq $found (hasKey $said "with")) }}
{{- "yes" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Of a CRD that another release owns helm would say that it cannot be imported, for each of them. */ -}}
{{- define "eclectus.checkOwner" -}}
{{- $found := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .name | default dict }}
{{- $annotations := (default dict $found.metadata).annotations | default dict }}
{{- $owner := printf "%s/%s" (index $annotations "meta.helm.sh/release-namespace" | default "") (index $annotations "meta.helm.sh/release-name" | default "") }}
{{- if not (has $owner (list "/" (printf "%s/%s" .root.Release.Namespace .root.Release.Name))) }}
{{- fail (printf "crds.install: the release %s has installed the CRDs of this cluster already. Set crds.install to false here; both releases use them." $owner) }}
{{- end }}
{{- end }}

{{- /* In a cluster (offline `lookup` finds nothing) a kind that it does not know is named before helm fails. */ -}}
{{- define "eclectus.checkMonitoring" -}}
{{- if and (lookup "v1" "Namespace" "" "kube-system") (not (.root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) }}
{{- fail (printf "%s: the cluster does not know the kind %s. Install the Prometheus Operator first, or set it to false." .value .kind) }}
{{- end }}
{{- end }}
