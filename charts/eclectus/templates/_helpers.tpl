{{- define "eclectus.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* A release called `eclectus` gives objects called `eclectus`, not `eclectus-eclectus`. */ -}}
{{- define "eclectus.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "eclectus.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "eclectus.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "eclectus.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "eclectus.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: name an existing ServiceAccount, or let serviceAccount.create be true" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* Selector labels of a Deployment: immutable as long as the release exists. */ -}}
{{- define "eclectus.selectorLabels" -}}
app.kubernetes.io/name: {{ include "eclectus.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: scheduler
{{- end }}

{{- define "eclectus.labels" -}}
{{ include "eclectus.selectorLabels" . }}
{{ include "eclectus.commonLabels" . }}
{{- end }}

{{- /* Labels of objects that belong to no single component. */ -}}
{{- define "eclectus.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: eclectus
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Not empty if the policies of a profile evict pods. */ -}}
{{- define "eclectus.evicts" -}}
{{- range .Values.config.profiles }}
{{- range include "eclectus.relief" . | fromYamlArray }}
{{- if ne .policy "none" }}true{{ end }}
{{- end }}
{{- if eq (dig "running" "pinned" (default dict .place)) "preempt" }}true{{ end }}
{{- end }}
{{- end }}

{{- /* What a profile says of `relieve`, as a list of policies: it may be one, or a list of names and policies. */ -}}
{{- define "eclectus.relief" -}}
{{- $given := default (dict "policy" "none") .relieve }}
{{- $found := list }}
{{- range ternary $given (list $given) (kindIs "slice" $given) }}
{{- $found = append $found (ternary (dict "policy" .) . (kindIs "string" .)) }}
{{- end }}
{{- toYaml $found }}
{{- end }}

{{- /* Not empty if the order of a profile plans DAG jobs. */ -}}
{{- define "eclectus.plansJobs" -}}
{{- $policies := .Files.Get "files/job-policies.yaml" | fromYaml }}
{{- range .Values.config.profiles }}
{{- if has (dig "policy" "" (default dict .order)) $policies.order }}true{{ end }}
{{- end }}
{{- end }}

{{- /* Not empty if a policy of a profile reads DAG jobs. */ -}}
{{- define "eclectus.readsJobs" -}}
{{- include "eclectus.plansJobs" . }}
{{- $policies := .Files.Get "files/job-policies.yaml" | fromYaml }}
{{- range .Values.config.profiles }}
{{- if has (dig "policy" "" (default dict .speculate)) $policies.speculate }}true{{ end }}
{{- end }}
{{- end }}

{{- /* Image reference of a value with repository, tag and digest: (dict "image" … "version" …). */ -}}
{{- define "eclectus.imageReference" -}}
{{- $repository := .image.repository }}
{{- with (.root.Values.global).imageRegistry }}
{{- $first := splitList "/" $repository | first }}
{{- $has_registry := and (contains "/" $repository) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) }}
{{- if not $has_registry }}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository }}
{{- end }}
{{- end }}
{{- if .image.digest }}
{{- printf "%s@%s" $repository .image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (default .root.Chart.AppVersion .image.tag) }}
{{- end }}
{{- end }}

{{- define "eclectus.image" -}}
{{- include "eclectus.imageReference" (dict "image" .Values.scheduler.image "root" .) }}
{{- end }}

{{- /* The operator's names and labels: the release's, with another component. */ -}}
{{- define "eclectus.operator.fullname" -}}
{{- printf "%s-operator" (include "eclectus.fullname" . | trunc 54 | trimSuffix "-") }}
{{- end }}

{{- define "eclectus.operator.serviceAccountName" -}}
{{- if .Values.operator.serviceAccount.create }}
{{- default (include "eclectus.operator.fullname" .) .Values.operator.serviceAccount.name }}
{{- else }}
{{- required "operator.serviceAccount.name: name an existing ServiceAccount, or let operator.serviceAccount.create be true" .Values.operator.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "eclectus.operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "eclectus.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "eclectus.operator.labels" -}}
{{ include "eclectus.operator.selectorLabels" . }}
{{ include "eclectus.commonLabels" . }}
{{- end }}

{{- /* The installation that a probe pod belongs to. Part of its name and labels, so only letters and digits. */ -}}
{{- define "eclectus.operator.instance" -}}
{{- printf "%s/%s" .Release.Namespace (include "eclectus.fullname" .) | sha256sum | trunc 10 }}
{{- end }}

{{- define "eclectus.operator.probeNamespace" -}}
{{- default .Release.Namespace .Values.operator.probes.namespace }}
{{- end }}

{{- /* Cluster-wide, so it contains the namespace. */ -}}
{{- define "eclectus.operator.priorityClass" -}}
{{- printf "%s-%s-probe" (include "eclectus.fullname" .) .Release.Namespace }}
{{- end }}

{{- /* Not empty if tokens are reviewed. A release of a chart without this value reviews them too. */ -}}
{{- define "eclectus.delegates" -}}
{{- if ne (default "delegated" .Values.config.server.authentication) "none" }}true{{ end }}
{{- end }}

{{- /* HTTPS, or HTTP without a certificate: (dict "root" $ "secret" …). */ -}}
{{- define "eclectus.scheme" -}}
{{- if or .secret (include "eclectus.delegates" .root) }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{- /* Where the Secret with the certificate is mounted, and the volume. */ -}}
{{- define "eclectus.tls.mount" -}}
- name: tls
  mountPath: /etc/eclectus-tls
  readOnly: true
{{- end }}

{{- define "eclectus.tls.volume" -}}
- name: tls
  secret:
    secretName: {{ . }}
{{- end }}

{{- define "eclectus.tls.certificate" }}/etc/eclectus-tls/tls.crt{{ end }}
{{- define "eclectus.tls.key" }}/etc/eclectus-tls/tls.key{{ end }}

{{- define "eclectus.visibility.name" -}}
{{- printf "%s-visibility" (include "eclectus.fullname" . | trunc 52 | trimSuffix "-") }}
{{- end }}

{{- /* The scheduler's configuration: values.config merged over defaults that depend on the release. */ -}}
{{- define "eclectus.config" -}}
{{- $server := dict "authentication" "delegated" }}
{{- if .Values.scheduler.tlsSecret }}
{{- $_ := set $server "tlsCertFile" (include "eclectus.tls.certificate" .) }}
{{- $_ := set $server "tlsPrivateKeyFile" (include "eclectus.tls.key" .) }}
{{- end }}
{{- $lease := dict "resourceNamespace" .Release.Namespace "resourceName" (include "eclectus.fullname" .) "bindFence" true }}
{{- $identity := dict "apiVersion" "eclectus.dev/v1alpha1" "kind" "SchedulerConfiguration" "leaderElection" $lease "server" $server }}
{{- if (.Values.visibility).enabled }}
{{- $visibility := dict "service" (printf "%s/%s" .Release.Namespace (include "eclectus.visibility.name" .)) "port" 10270 }}
{{- if contains ":" (default "" (.Values.config.server).address) }}
{{- $_ := set $visibility "address" .Values.config.server.address }}
{{- end }}
{{- $_ := set $identity "visibility" $visibility }}
{{- end }}
{{- mergeOverwrite $identity (deepCopy .Values.config) | toYaml }}
{{- end }}
